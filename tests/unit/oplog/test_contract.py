"""Every requirement of OpLog's contract has a test that names it: ``test_R16_R27_…``, in any case.

``R1`` to ``R42`` are stated by the original's first README, ``H1`` to ``H15`` were added by its last one.
``C1`` to ``C28`` are cases in which the original's behaviour is not said, or not as promised; ``S1`` to
``S21`` those of its synchronisation; ``G1`` to ``G6`` are ways in which it loses operations. The id of a case
(``id="S2"``) counts as the name of its test.
"""

import re
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

TESTS = Path(__file__).parents[2]
ABOUT_OPLOG = re.compile(r"oplog|operations|test_agent|test_sync")
"""In the paths of the modules that count: the same numbers mean other things elsewhere."""
HOW_MANY = {"R": 42, "H": 15, "C": 28, "S": 21, "G": 6}
REQUIREMENTS = [f"{letter}{number}" for letter, most in HOW_MANY.items() for number in range(1, most + 1)]
_TEST = re.compile(r"def test_(\w+)|\bid=\"([A-Z]\d+)\b")
_RANGE = re.compile(r"([RHCSG])(\d+)_TO_\1(\d+)(?=_|$)")
_NUMBER = re.compile(r"(?:^|_)([RHCSG]\d+)(?=_|$)")


def named(test: str) -> set[str]:
    """The requirements that the name of a test names."""
    text = test.upper()
    found = {
        f"{letter}{number}"
        for letter, first, last in _RANGE.findall(text)
        for number in range(int(first), int(last) + 1)
    }
    return found | set(_NUMBER.findall(text))


@cache
def _found() -> dict[str, list[str]]:
    """The tests of each requirement."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        place = str(file.relative_to(TESTS))
        if ABOUT_OPLOG.search(place):
            for name, case in _TEST.findall(file.read_text()):
                for requirement in named(name or case):
                    found.setdefault(requirement, []).append(f"{place}::{name or case}")
    return found


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_a_requirement_has_a_test(requirement: str) -> None:
    assert _found().get(requirement), f"no test is called test_{requirement}_…"


def test_no_test_names_a_requirement_that_there_is_not() -> None:
    assert sorted(set(_found()) - set(REQUIREMENTS)) == []


@pytest.mark.parametrize(
    ("test", "requirements"),
    [
        ("R16_R27_a_name", {"R16", "R27"}),
        ("a_name_of_r1", {"R1"}),
        ("r36_to_r38_a_range", {"R36", "R37", "R38"}),
        ("H4", {"H4"}),
        ("CR16_R_16_16_TH4", set()),
    ],
)
def test_requirements_are_read_from_names(test: str, requirements: set[str]) -> None:
    assert named(test) == requirements
