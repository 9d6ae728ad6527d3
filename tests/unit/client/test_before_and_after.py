"""Item 10: what is read of an entity does not depend on how much of it is replicated.

Whatever its numbers are: used twice, going back, jumping over segments, deleted before they are appended, of
the same millisecond. One thing is left out: where numbers went back before a purge, and a delete is the first
action after it, rows may show that the purge did not reach (docs/compatibility.md, "Shared limits").
"""

import re
from typing import Any

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from tests.support.memory_client import World

from tidemark.client import reader
from tidemark.client.errors import ChangedWhileReading, DuplicateSeqNr, GapTooWide

pytestmark = pytest.mark.unit

numbers = st.one_of(st.integers(1, 6), st.integers(1, 30))
appends = st.builds(
    lambda first, count, sent: f"A{','.join(str(first + n) for n in range(count))}@{sent}",
    numbers,
    st.integers(1, 4),
    st.integers(0, 3),
)
words = st.one_of(
    appends, appends, appends, st.builds("D{}".format, numbers), st.sampled_from(["P", "M", "j:A1", "-"])
)
UNREACHED = re.compile(r"P( M| -| j:A1)* D")
histories = st.lists(words, max_size=8).map(" ".join).filter(lambda history: not UNREACHED.search(history))


def answer(world: World, first: int) -> Any:
    """What a reader gets, and the number of the last event."""
    last = world.client().pointer("k")
    try:
        found = [(e.seq_nr, e.offset, e.content, e.timestamp) for e in world.client().read("k", first)]
    except (DuplicateSeqNr, GapTooWide) as error:
        return last, type(error).__name__
    return last, found


def answers(history: str, size: int, first: int) -> list[Any]:
    """The same history, with more and more of it replicated: at once, and one by one."""
    length = len(World(history).records)
    found = []
    for replicated in range(length + 1):
        at_once = World(history, size)
        at_once.replicate(replicated)
        found.append(answer(at_once, first))
    singly = World(history, size)
    for replicated in range(length + 1):
        singly.replicate(replicated)
        found.append(answer(singly, first))
    return found


@settings(max_examples=400, deadline=None)
@given(history=histories, size=st.sampled_from([2, 3, 10]), first=st.sampled_from([1, 1, 1, 2, 5]))
@example("A1@1 A2@2 A2@3", 10, 1)
@example("A1@1 A2@2 A2@2", 10, 1)
@example("A1 A5 A2", 10, 1)
@example("A1 A20 A2", 2, 1)
@example("A1 A20 A2 A30", 2, 1)
@example("A1 A5 A2 D2", 10, 1)
@example("A1,2,3,4,5 D4 A3 D3", 10, 1)
@example("D9 A3 D3 A4", 10, 1)
@example("A3 A1 P A2 A1", 2, 1)
@example("D1 A3 A1,2", 2, 1)
@example("D1 A7 A1 A3,4,5,6", 2, 1)
def test_a_read_before_replication_is_a_read_after_it(history: str, size: int, first: int) -> None:
    found = answers(history, size, first)
    assert [one for one in found if one != found[-1]] == []
    event(found[-1][1] if isinstance(found[-1][1], str) else "events")


@settings(max_examples=200, deadline=None)
@given(
    history=histories, size=st.sampled_from([2, 10]), replicated=st.integers(0, 8), landed=st.integers(0, 20)
)
@example("D1 j:A1 D2 A1,2@0 A1,2,3@0 A1,2,3,4@0 A1,2,3,4@0", 2, 1, 12)
def test_nor_does_it_depend_on_a_run_that_is_under_way(
    history: str, size: int, replicated: int, landed: int
) -> None:
    world = World(history, size)
    world.replicate(min(replicated, len(world.records)))
    world.begin_run()
    world.land(min(landed, len(world.pending)))
    try:
        found = answer(world, 1)
    except ChangedWhileReading:  # said, because what a delete removes cannot be told half-way
        event("changed")
        assert "D" in history
        return
    world.land()
    assert found == answer(world, 1)


def test_the_numbers_of_a_tail_that_goes_back_are_in_their_order() -> None:
    assert [e.seq_nr for e in World("A1 A5 A2 A3").client().read("k")] == [1, 2, 3, 5]


def test_a_tail_too_large_to_be_kept_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "KEPT_BYTES", 0)
    assert [e.seq_nr for e in World("A1 A5 A2 A3").client().read("k")] == [1, 2, 3, 5]
