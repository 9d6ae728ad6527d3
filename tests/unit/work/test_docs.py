"""docs/work-journal.md names every key of a declaration, every method and every command."""

import pytest
from typer.main import get_command

from tidemark.cli.work.main import app
from tidemark.settings import ROOT
from tidemark.work.client import Work
from tidemark.work.loader import load_journal
from tidemark.work.model.declaration import WorkDeclaration

pytestmark = pytest.mark.unit

PAGE = (ROOT / "docs/work-journal.md").read_text()
INNER = {"of_journal", "parts", "name", "close", "declared"}


@pytest.mark.parametrize("word", sorted(WorkDeclaration.model_fields))
def test_the_page_names_every_key(word):
    assert f"`{word}`" in PAGE


@pytest.mark.parametrize(
    "method", sorted(name for name in vars(Work) if name[0] != "_" and name not in INNER)
)
def test_the_page_names_every_method(method):
    assert f"{method}(" in PAGE or f"`{method}`" in PAGE


@pytest.mark.parametrize("command", sorted(get_command(app).commands))
def test_the_page_names_every_command(command):
    assert f"`{command}`" in PAGE


def test_the_shortest_file_on_the_page_works(tmp_path):
    file = tmp_path / "pages.yaml"
    file.write_text(PAGE.split("```yaml\n")[1].split("```")[0])
    assert load_journal(file).name == "pages"
