"""What a read refuses, and what it goes on with: never a part of an answer taken for the whole."""

from uuid import UUID

import pytest
from structlog.testing import capture_logs
from tests.support.journal_samples import TOPIC
from tests.support.memory_client import PARTITION, World

from tidemark.client import table_events
from tidemark.client.errors import (
    BadRecord,
    DuplicateSeqNr,
    GapTooWide,
    PointerBeyondEnd,
    TablesUnreadable,
    TailLost,
)

pytestmark = pytest.mark.unit


def given_replicated(history: str, segment_size: int = 10_000) -> World:
    world = World(history, segment_size)
    world.replicate()
    return world


# What is read


def test_a_purge_in_the_tail_means_that_cassandra_is_not_read() -> None:
    world = given_replicated("A1,2,3")
    world.send_words("P A1")
    assert world.read() == [(1, 2)]
    assert world.asked == ["mark", "pointer", "tail"]


def test_nothing_of_the_tail_is_read_where_cassandra_has_everything() -> None:
    world = given_replicated("A1,2,3")
    assert world.read() == [(1, 0), (2, 0), (3, 0)]
    assert "tail" not in world.asked


def test_a_short_tail_is_read_once() -> None:
    world = World("A1 A2 A3")
    assert world.read() == [(1, 0), (2, 1), (3, 2)]
    assert world.asked.count("tail") == 1


def test_the_first_mark_of_a_partition_has_nothing_before_it() -> None:
    world = World("")
    assert (world.read(), world.client().pointer("k")) == ([], None)


# Kafka


@pytest.mark.parametrize(("pointer", "begin"), [(None, 1), (0, 2)])
def test_a_tail_that_kafka_does_not_have_any_more(pointer: int | None, begin: int) -> None:
    world = World("A1 A2 A3")
    if pointer is not None:
        world.replicate(pointer + 1)
    world.begin = begin
    with pytest.raises(TailLost) as raised:
        world.read()
    first = 0 if pointer is None else pointer + 1
    assert (raised.value.pointer, raised.value.first, raised.value.needs_person) == (pointer, first, True)


def test_a_tail_that_was_replicated_meanwhile_is_read_from_cassandra() -> None:
    world = World("A1 A2 A3")

    def on_tick(_: int) -> None:
        if world.asked.count("pointer") == 1 and world.asked[-1] == "tail":
            world.replicate()
            world.begin = len(world.records)

    world.on_tick = on_tick
    assert world.read() == [(1, 0), (2, 1), (3, 2)]


def test_a_pointer_beyond_the_end_of_its_partition() -> None:
    world = World("A1 A2 A3")
    world.journal.point(TOPIC, PARTITION, 9)
    with pytest.raises(PointerBeyondEnd) as raised:
        world.read()
    assert (raised.value.pointer, raised.value.end) == (9, 4)


def test_an_append_in_the_tail_that_cannot_be_understood() -> None:
    world = World("A1 A2! A3")
    events = world.client().read("k")
    assert next(events).seq_nr == 1
    with pytest.raises(BadRecord) as raised:
        next(events)
    assert (raised.value.partition, raised.value.offset) == (PARTITION, 1)


def test_what_is_not_handed_out_need_not_be_understood() -> None:
    assert World("A1 A2! A3").read(3) == [(3, 2)]


# Cassandra


@pytest.mark.parametrize(
    ("asked", "time", "handed_out"),
    [("pointer", 1, []), ("head", 1, []), ("rows", 1, []), ("rows", 2, [1, 2])],
)
def test_cassandra_that_does_not_answer(asked: str, time: int, handed_out: list[int]) -> None:
    world = given_replicated("A1,2,3,4,5")
    world.send_words("A6")

    def on_tick(_: int) -> None:
        if world.asked[-1] == asked and world.asked.count(asked) == time:
            raise TablesUnreadable(TOPIC, "k", asked, "no answer")

    world.on_tick = on_tick
    found: list[int] = []
    with pytest.raises(TablesUnreadable, match="not all there are"):
        found += (event.seq_nr for event in world.client().read("k"))
    assert found == handed_out


def test_two_rows_with_one_number() -> None:
    world = given_replicated("A1@5 A2@6 A2@7 A3@8")
    events = world.client().read("k")
    assert [next(events).seq_nr for _ in range(2)] == [1, 2]
    with pytest.raises(DuplicateSeqNr) as raised:
        next(events)
    assert (raised.value.seq_nr, raised.value.expected, raised.value.offset) == (2, 3, 2)


@pytest.mark.parametrize("tail", ["A2@7 A3", "A3 A2@7", "A3@5 A3@6", "A3,4 A4@9 A5"])
def test_two_events_with_one_number_in_the_tail_are_refused_as_in_the_tables(tail: str) -> None:
    """Item 10."""
    world = given_replicated("A1@5 A2@6")
    world.send_words(tail)
    with pytest.raises(DuplicateSeqNr):
        world.read()
    world.replicate()
    with pytest.raises(DuplicateSeqNr):
        world.read()


FOREIGN = UUID(int=7)


def given_foreign_row() -> World:
    """Event 2 has a row that an earlier incarnation left, too; event 4 has only such a one."""
    world = given_replicated("A1 A2 A3")
    place = ("k", TOPIC, 0)
    for seq_nr in (2, 4):
        cells = {"partition": 0, "offset": 0, "meta_record_id": FOREIGN, "metadata": "{}"}
        world.journal.journal.insert(place, (seq_nr, 0), cells, 1)
    return world


def test_rows_of_another_incarnation_are_left_out() -> None:
    world = given_foreign_row()
    with capture_logs() as said:
        assert world.read() == [(1, 0), (2, 1), (3, 2)]
    assert [(one["entity"], one["seq_nr"]) for one in said] == [("k", 2)]


def test_without_correlation_they_are_handed_out() -> None:
    world = given_foreign_row()
    assert world.read(3, correlate=False) == [(3, 2), (4, 0)]
    with pytest.raises(DuplicateSeqNr):
        world.read(correlate=False)


def test_a_head_without_an_id_takes_any_row() -> None:
    world = given_replicated("D3 A4,5")
    assert world.journal.of(TOPIC).head("k").record_id is None
    assert world.read() == [(4, 1), (5, 1)]


def test_rows_beyond_the_head_are_handed_out() -> None:
    """An append's process died before the head was written, and its partition went on."""
    world = given_replicated("A1,2")
    head = world.journal.of(TOPIC).head("k")
    cells = {"partition": 0, "offset": 0, "meta_record_id": head.record_id, "metadata": "{}"}
    world.journal.journal.insert(("k", TOPIC, 0), (3, 0), cells, 1)
    assert [seq_nr for seq_nr, _ in world.read()] == [1, 2, 3]


def test_numbers_that_jump_over_segments_are_found() -> None:
    assert given_replicated("A1 A50 A51", 2).read() == [(1, 0), (50, 1), (51, 2)]


def test_numbers_that_jump_too_far_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_events, "MOST_EMPTY_SEGMENTS", 10)
    world = given_replicated("A1 A50", 2)
    events = world.client().read("k")
    assert next(events).seq_nr == 1
    with pytest.raises(GapTooWide) as raised:
        next(events)
    assert (raised.value.expected, raised.value.seq_nr) == (2, 50)
    assert world.read(50) == [(50, 1)]


def test_a_head_of_another_partition_says_nothing_by_its_offset() -> None:
    """The topic got more partitions: rows and head were replicated from another one."""
    world = given_replicated("A1,2,3")
    world.journal.metajournal.insert(
        (TOPIC, world.journal.of(TOPIC).head("k").segment), ("k",), {"partition": 1, "offset": 900}, 10**9
    )
    for seq_nr in (1, 2, 3):
        world.journal.journal.insert(
            ("k", TOPIC, 0), (seq_nr, 0), {"partition": 1, "offset": 800 + seq_nr}, 10**9
        )
    world.send_words("A4")
    assert world.read() == [(1, 801), (2, 802), (3, 803), (4, 1)]
