"""Rules for the tests themselves: shared code is in tests/support, and what many tests need exists once."""

import re
from pathlib import Path

import pytest
from tests.support.imports import imported_modules

pytestmark = pytest.mark.unit

TESTS = Path(__file__).parents[2]
FILES = sorted(TESTS.rglob("*.py"))


def defined(name: str) -> list[str]:
    """The files that define a class of this name."""
    found = re.compile(rf"^\s*class {name}\b", re.MULTILINE)
    return [str(file.relative_to(TESTS)) for file in FILES if found.search(file.read_text())]


def test_no_module_imports_from_a_test_module_or_a_conftest():
    wrong = re.compile(r"^tests\.(.*\.)?(test_\w+|conftest)(\.|$)")
    found = {
        str(file.relative_to(TESTS)): names
        for file in FILES
        if (names := [name for name in imported_modules(file) if wrong.match(name)])
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
