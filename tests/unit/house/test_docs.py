"""What the documents say is true: pages are current, links lead somewhere, tables are complete."""

import re
import runpy
from pathlib import Path

import pytest
from typer.main import get_command

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

PAGES = [ROOT / "README.md", ROOT / "bench" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_page_of_the_dags_is_what_their_files_say() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "generate.py"))["page"]
    assert (ROOT / "docs" / "dags.md").read_text() == page(), "run: make docs"


def test_the_map_of_the_packages_is_what_the_imports_say() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "map.py"))["page"]
    assert (ROOT / "docs" / "architecture.md").read_text() == page(), "run: make docs"


def test_every_module_that_the_architecture_names_exists() -> None:
    named = re.findall(r"`([\w/]+(?:\.py|/))`", (ROOT / "docs" / "architecture.md").read_text())
    places = [(ROOT / name, ROOT / "include" / "tidemark" / name) for name in named]
    assert [str(either) for either, other in places if not (either.exists() or other.exists())] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_names_every_make_target_and_command_that_exists() -> None:
    from tidemark.cli.main import app
    from tidemark.cli.services import app as services

    readme = (ROOT / "README.md").read_text()
    commands = {f"tidemark {name}" for name in get_command(app).commands if name != "services"}
    assert {command for command in commands if command not in readme} == set()
    assert {
        name
        for name in get_command(services).commands
        if f"`{name}" not in readme and f"services {name}" not in readme
    } == set()


def test_make_help_lists_the_targets_others_rely_on() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.M))
    wanted = {"demo", "test", "help", "up", "down", "status", "bench", "soak", "lint", "fmt", "docs", "clean"}
    assert wanted <= targets


def test_no_registry_host_is_written_anywhere() -> None:
    host = re.compile(r"pypi\.org|maven\.org|repo1\.|mvnrepository|npmjs|docker\.io|ghcr\.io|quay\.io", re.I)
    here = Path(__file__).name
    suffixes = {".py", ".md", ".yaml", ".xml", ".toml", ".txt", ".in", ".lock", ".sh", ".properties", ""}
    folders = ("include", "dags", "plugins", "spark_apps", "docs", "deploy", "bin", "tests", "bench")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    files += [path for path in ROOT.iterdir() if path.is_file()]
    named = [path for path in files if path.is_file() and path.name != here and host.search(_text(path))]
    assert named == []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""
