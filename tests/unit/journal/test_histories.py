"""Any history of an entity, cut, crashed and redelivered in any way, ends in the same visible state.

The histories are unruly: sequence numbers come again, deletes overshoot or come late, purges follow one
another. One thing they respect: a repeated number lies less than a segment below the highest, which is as far
as a purge overshoots (see docs/compatibility.md).
"""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.writer_model import Delivered, Writer

from tidemark.journal.action import Action, Delete, Mark, Purge, append
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata

pytestmark = pytest.mark.unit

DAY = 86_400_000_000
PAYLOADS = [("json", '{"a":1}'), ("text", "a"), ("binary", b"a"), (None, None)]

sizes = st.sampled_from([2, 3, 10, 10_000])


@dataclass(frozen=True)
class History:
    segment_size: int
    records: list[Delivered]


@st.composite
def histories(draw: st.DrawFn, most: int = 14) -> History:
    size = draw(sizes)
    records = []
    highest = 0
    for offset in range(draw(st.integers(1, most))):
        bound_at = (offset // 3 + 1) * DAY
        kind = draw(st.sampled_from("aaaarddpm"))
        action: Action
        if kind in "ar":
            back = draw(st.integers(0, min(size - 1, highest))) if kind == "r" else -1
            first = max(1, highest - back + (draw(st.sampled_from([0, 0, 0, 2])) if kind == "a" else 0))
            numbers = range(first, first + draw(st.integers(1, 3)))
            highest = max(highest, numbers[-1])
            payload_type, payload = draw(st.sampled_from(PAYLOADS))
            expires = draw(st.sampled_from([None, ExpireAfter(1, "day"), ExpireAfter(5, "hour")]))
            events = tuple(EncodedEvent(number, (), payload_type, payload) for number in numbers)
            action = append("id", offset // 4, Events(events, PayloadMetadata(expires)))
        elif kind == "d":
            action = Delete("id", 0, draw(st.integers(1, highest + 2)))
            # Without a head, a delete makes one that claims to have got so far.
            highest = max(highest, action.to) if highest == 0 else highest
        elif kind == "p":
            action = Purge("id", 0)
            highest = 0
        else:
            action = Mark("id", 0, "m")
        record = write_action(action)
        records.append(
            Delivered(
                offset,
                0,
                offset,
                bound_at + offset,
                bound_at,
                record.key,
                record.value,
                record.timestamp,
                record.headers,
            )
        )
    return History(size, records)


def state(writer: Writer) -> dict[str, Any]:
    return {"entity": writer.visible("id"), "pointer2": writer.pointers}


def one_by_one(history: History) -> Writer:
    writer = Writer("topic", history.segment_size)
    for record in history.records:
        writer.deliver([record])
    return writer


def no_row_is_left_over(writer: Writer) -> bool:
    """Every row there is can be read: nothing hides below ``delete_to`` or behind another incarnation."""
    visible = writer.visible("id")
    return writer.rows("id").keys() == (visible["rows"].keys() if visible else set())


@given(histories(), st.data())
@settings(max_examples=60, deadline=None)
def test_any_cut_gives_the_same_state(history: History, data: st.DataObject) -> None:
    writer = Writer("topic", history.segment_size)
    rest = history.records
    while rest:
        length = data.draw(st.integers(1, len(rest)))
        writer.deliver(rest[:length])
        rest = rest[length:]
    assert state(writer) == state(one_by_one(history))
    assert no_row_is_left_over(writer)


@given(histories(), st.data())
@settings(max_examples=80, deadline=None)
def test_any_redelivery_gives_the_same_state(history: History, data: st.DataObject) -> None:
    """Attempts start anywhere up to the pointer, write in pieces, end anywhere, and die after any write."""
    writer = Writer("topic", history.segment_size)
    for _ in range(data.draw(st.integers(1, 5))):
        done = writer.pointers.get(0, -1) + 1
        first = data.draw(st.integers(0, done))
        for _ in range(data.draw(st.integers(0, 2))):
            first, start = data.draw(st.integers(first, len(history.records))), first
            if start < first:
                writer.deliver(history.records[start:first], moves_pointer=False)
        last = data.draw(st.integers(first, len(history.records)))
        if first < last:
            die_after = data.draw(st.integers(0, 12))
            writer.deliver(history.records[first:last], die_after=die_after, moves_pointer=False)
        if done < last and data.draw(st.booleans()):
            writer.deliver(history.records[done:last])
    writer.deliver(history.records)
    assert state(writer) == state(one_by_one(history))
    assert no_row_is_left_over(writer)


@given(histories(most=8))
@settings(max_examples=20, deadline=None)
def test_death_after_every_write_then_one_at_a_time(history: History) -> None:
    """As a stopped writer resumes: the same messages, each in a run of its own."""
    expected = state(one_by_one(history))
    writes, survived = 1, 0
    while survived < writes:
        writer = Writer("topic", history.segment_size)
        writes = writer.deliver(history.records, die_after=survived)
        for record in history.records:
            writer.deliver([record])
        assert state(writer) == expected
        assert no_row_is_left_over(writer)
        survived += 1
