"""Appends in the window that no check closes."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.expiry.errors import AppendsPurged
from tidemark.expiry.overtaken_appends import Logged, Overtaken, SentPurge, find_overtaken, pins_of
from tidemark.journal.action import Action, Append, Delete, Mark, Purge
from tidemark.log.state.pins import Pin

pytestmark = pytest.mark.unit

DAY = date(2026, 11, 17)
SENT = SentPurge("orders", "k", DAY, 0, 10, 14, 3)


def append(key: str = "k") -> Append:
    return Append(key, 1, 1, 1, "json", b"{}")


def logged(offset: int, action: Action, partition: int = 0, topic: str = "orders") -> Logged:
    return Logged(100 + offset, topic, partition, offset, action)


@pytest.mark.parametrize(
    ("message", "is_overtaken"),
    [
        pytest.param(logged(9, append()), False, id="seen by the check"),
        pytest.param(logged(10, append()), True, id="right after the check"),
        pytest.param(logged(13, append()), True, id="right before the purge"),
        pytest.param(logged(15, append()), False, id="after the purge, a new incarnation"),
        pytest.param(logged(12, append("other")), False, id="another entity's"),
        pytest.param(logged(12, append(), topic="refunds"), False, id="another topic's"),
        pytest.param(logged(12, append(), partition=1), False, id="another partition's"),
        pytest.param(logged(12, Mark("k", 1, "m")), False, id="a mark"),
        pytest.param(logged(12, Delete("k", 1, 3)), False, id="a delete"),
        pytest.param(logged(14, Purge("k", 1)), False, id="the purge itself"),
    ],
)
def test_which_appends_a_purge_overtook(message: Logged, is_overtaken: bool) -> None:
    expected = [Overtaken(message.id, "orders", "k", 0, message.offset, 14)] if is_overtaken else []
    assert find_overtaken([SENT], [message]) == expected


def test_an_append_is_named_once_however_often_its_entity_was_purged() -> None:
    twice = SentPurge("orders", "k", DAY, 0, 8, 20, 3)
    assert [one.id for one in find_overtaken([SENT, twice], [logged(12, append())])] == [112]


def test_what_was_overtaken_is_pinned_and_said_aloud() -> None:
    found = [Overtaken(100 + offset, "orders", "k", 0, offset, 14) for offset in range(7)]
    assert pins_of(found[:1], "orders.purge_expired r1", 5) == [
        Pin(100, "orders.purge_expired r1", "an append to orders/k that the purge at 0@14 overtook", 5)
    ]
    error = AppendsPurged("orders", found)
    assert error.needs_person
    assert "7 appends" in str(error)
    assert "orders/k: id 104; and 2 more" in str(error)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("AMDP")), max_size=20), st.data())
def test_every_append_is_purged_knowingly_or_named(
    history: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Whatever was appended before the purge was seen by the check, or is found afterwards."""
    checked = data.draw(st.integers(0, len(history)))
    makers = {"A": append, "M": lambda k: Mark(k, 1, "m"), "D": lambda k: Delete(k, 1, 1)}
    messages = [
        logged(offset, makers.get(kind, lambda k: Purge(k, 1))(key))
        for offset, (key, kind) in enumerate(history)
    ]
    sent = SentPurge("orders", "a", DAY, 0, checked, len(history), 0)
    named = {one.offset for one in find_overtaken([sent], messages)}
    appended = {offset for offset, word in enumerate(history) if word == ("a", "A")}
    assert named == {offset for offset in appended if offset >= checked}
