"""No log line has a rendered traceback: renderers may print the variables of every frame, also passwords."""

import ast
from pathlib import Path

import pytest

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

FOLDERS = ("include", "spark_apps", "dags", "plugins")
LOGGERS = {"events", "log", "logger", "logging"}


def renders(call: ast.Call) -> bool:
    """Whether a call gives a logger the traceback of an error."""
    called = call.func
    is_exception = isinstance(called, ast.Attribute) and called.attr == "exception"
    of_logger = isinstance(called, ast.Attribute) and getattr(called.value, "id", "") in LOGGERS
    return (is_exception and of_logger) or any(one.arg in {"exc_info", "stack_info"} for one in call.keywords)


def places(file: Path) -> list[str]:
    found = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return [f"{file.relative_to(ROOT)}:{one.lineno}" for one in found if renders(one)]


def test_tracebacks_are_printed_and_never_logged():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert [place for file in files for place in places(file)] == []
