"""Plain words: a process, a run, a task or an operator does things, never an indefinite person."""

import re
from pathlib import Path

import pytest

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

INDEFINITE = re.compile(
    r"\b(somebody|someone|nobody|no one|whoever|whomever|anybody|anyone|everybody)\b", re.I
)
FOLDERS = ("include", "plugins", "dags", "spark_apps", "docs", "deploy", "bin", "bench")
SUFFIXES = {".py", ".md", ".yaml", ".html", ".sh", ".java", ""}


def texts() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    found += [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "Makefile", ROOT / "docker-compose.yaml"]
    return sorted(path for path in found if path.is_file() and "egg-info" not in str(path))


def test_no_text_speaks_of_indefinite_persons() -> None:
    said = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if INDEFINITE.search(line)
    ]
    assert said == []
