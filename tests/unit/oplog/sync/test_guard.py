"""How many deletes a synchronisation may send."""

import pytest

from tidemark.oplog.sync.errors import LimitRefused, TooManyDeletes
from tidemark.oplog.sync.guard import USUAL, DeleteLimit, refuse_too_many

pytestmark = pytest.mark.unit


def test_S19_999_deletes_of_1000_objects_are_refused():
    with pytest.raises(TooManyDeletes) as refused:
        refuse_too_many("events", 999, 1_000, DeleteLimit.parse(USUAL))
    assert (refused.value.deletes, refused.value.live, refused.value.allowed) == (999, 1_000, 100)


@pytest.mark.parametrize(
    ("text", "live", "allowed"),
    [
        ("500", 10, 500),
        ("0", 10, 0),
        ("10%", 1_000, 100),
        ("10%", 3, 10),
        ("2.5 %", 1_000, 25),
        ("100%", 50, 50),
    ],
)
def test_a_limit_is_a_number_or_a_share(text, live, allowed):
    assert DeleteLimit.parse(text).allowed(live) == allowed


def test_as_many_as_are_allowed_are_not_refused():
    refuse_too_many("events", 100, 1_000, DeleteLimit.parse("10%"))


@pytest.mark.parametrize("text", ["", "many", "-1", "101%", "10 percent", "%", "1e3", "١٠"])
def test_another_text_is_no_limit(text):
    with pytest.raises(LimitRefused, match="10%"):
        DeleteLimit.parse(text)
