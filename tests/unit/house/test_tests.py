"""Rules for the tests themselves: shared code is in tests/support, and what many tests need exists once."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

TESTS = Path(__file__).parents[2]
FILES = sorted(TESTS.rglob("*.py"))


def imported(file: Path) -> Iterator[str]:
    """Every module that a file imports, and every name it imports from a package."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def defined(name: str) -> list[str]:
    """The files that define a class of this name."""
    found = re.compile(rf"^\s*class {name}\b", re.MULTILINE)
    return [str(file.relative_to(TESTS)) for file in FILES if found.search(file.read_text())]


def test_no_module_imports_from_a_test_module_or_a_conftest():
    wrong = re.compile(r"^tests\.(.*\.)?(test_\w+|conftest)(\.|$)")
    found = {
        str(file.relative_to(TESTS)): names
        for file in FILES
        if (names := [name for name in imported(file) if wrong.match(name)])
    }
    assert found == {}, "move what is shared to tests/support"


@pytest.mark.parametrize("name", ["Killed", "Clock", "RacingConsensus", "FlakyConsensus"])
def test_a_fake_that_many_tests_need_is_defined_once(name):
    (place,) = defined(name)
    assert place.startswith("support/")


def test_no_test_sleeps():
    """A test waits for a condition (``tests/support/waiting.py``) or on a clock of its own."""
    sleeping = re.compile(r"\btime\.sleep\(|asyncio\.sleep\([^0)]")
    found = [str(file.relative_to(TESTS)) for file in FILES if sleeping.search(file.read_text())]
    assert [
        name for name in found if not name.startswith("soak/") and name != "unit/house/test_tests.py"
    ] == []
