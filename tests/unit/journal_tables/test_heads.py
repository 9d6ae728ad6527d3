"""Heads are read once, in as few queries as that takes, and carried along.

The keys ``e0`` to ``e9`` have their heads in segments 3179 to 3188, or of old in 79 to 88; so have ``E0`` to
``E9``.
"""

from datetime import date
from uuid import UUID

import pytest
from tests.support.journal_samples import Lease, given_actions, journal_writer
from tests.support.log_samples import given_binding
from tests.support.memory_journal import HeadRow, MemoryJournal, MemoryTables

from tidemark.delivery.writer import BadMessage, Part, Writing
from tidemark.journal.effect import Effect, HeadTombstone
from tidemark.journal.head import Head
from tidemark.journal_tables import heads as journal_heads
from tidemark.journal_tables.heads import ChangedHead, PartitionHeads, head_of
from tidemark.writers.journal import writer as journal

pytestmark = pytest.mark.unit

MANY = [f"e{number}" for number in range(10)]
TODAY, OLD = range(3179, 3189), range(79, 89)
BINDING = given_binding(1_000_000, 0, ("orders", 0, 0, 30))


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables(MemoryJournal())


@pytest.fixture
def heads(tables: MemoryTables) -> PartitionHeads:
    """Those of orders/0."""
    return PartitionHeads(tables, "orders", 0)


def head(segment: int, seq_nr: int = 1, partition: int = 0) -> Head:
    return Head(segment, partition, 5, 10_000, seq_nr, None, 1_000, 2_000)


def put(tables: MemoryTables, key: str, given: Head) -> None:
    tables.journal.of("orders").insert_head(key, given, 0)


def write(tables: MemoryTables, *chunks: str) -> None:
    batches = [given_actions(BINDING, chunk, first=10 * number) for number, chunk in enumerate(chunks)]
    journal_writer(tables).write(Part(BINDING, ()), Writing(batches, Lease(tables)))


# Where a head is


def test_an_entity_without_a_head_has_none(heads):
    heads.load(["e0"])
    assert heads["e0"] is None


def test_todays_segment_comes_before_the_old_one(tables, heads):
    put(tables, "e0", head(79, seq_nr=1))
    put(tables, "e0", head(3179, seq_nr=2))
    heads.load(["e0"])
    assert heads["e0"] == head(3179, seq_nr=2)


def test_a_head_is_found_in_the_old_segment(tables, heads):
    put(tables, "e0", head(79))
    heads.load(["e0"])
    assert heads["e0"] == head(79)


def test_a_head_in_the_old_segment_stays_there(tables):
    put(tables, "e0", head(79)._replace(offset=-1))
    write(tables, "e0:A2")
    assert [row.segment for segment in (79, 3179) for row in tables.journal.heads("orders", segment)] == [79]


def test_a_head_that_was_purged_in_the_old_segment_comes_back_in_todays(tables):
    put(tables, "e0", head(79)._replace(offset=-1))
    write(tables, "e0:P e0:A1")
    assert [row.segment for segment in (79, 3179) for row in tables.journal.heads("orders", segment)] == [
        3179
    ]


def test_a_head_has_everything_that_its_row_has():
    given = Head(
        *(3179, 2, 5, 10, 7, 3, 1_700_000_000_123, 1_700_000_000_456),
        *(90_061_000_000_001, date(2024, 2, 29), UUID(int=5), "host"),
    )
    assert head_of(HeadRow.of(given, "e0")) == given


@pytest.mark.parametrize("stored", [None, 0, 1])
def test_a_segment_size_that_cannot_be_is_the_default(stored):
    row = HeadRow.of(head(3179), "e0")._replace(segment_size=stored)
    assert head_of(row).segment_size == 10_000


def test_a_head_that_never_said_when_it_was_made_was_made_at_the_beginning():
    row = HeadRow.of(head(3179), "e0")._replace(created=None, updated=None)
    assert (head_of(row).created, head_of(row).updated) == (0, 0)


# How heads are asked for


def test_few_segments_are_asked_for_by_name(tables, heads):
    heads.load(["e0", "e1", "E1"])
    assert tables.asked == [
        ("heads", 3179, "e0"),
        ("heads", 3180, "E1", "e1"),
        ("heads", 79, "e0"),
        ("heads", 80, "E1", "e1"),
    ]


def test_an_entity_that_is_found_is_not_looked_for_in_the_old_segment(tables, heads):
    put(tables, "e0", head(3179))
    heads.load(["e0", "e1"])
    assert ("heads", 79, "e0") not in tables.asked


def test_a_segment_that_is_todays_and_the_old_one_is_asked_once(tables, heads):
    heads.load(["\x01"])
    assert tables.asked == [("heads", 1, "\x01")]


def test_many_names_are_asked_some_at_once(tables, heads, monkeypatch):
    monkeypatch.setattr(journal_heads, "KEYS_AT_ONCE", 2)
    heads.load(["ab0", "aB0", "Ab0"])
    assert [len(keys) for _, _, *keys in tables.asked[:2]] == [2, 1]


def test_a_head_is_read_once(tables, heads):
    heads.load(["e0"])
    heads.load(["e0", "e1"])
    assert [asked for asked in tables.asked if "e0" in asked] == [("heads", 3179, "e0"), ("heads", 79, "e0")]


def test_many_segments_are_read_whole(tables, heads):
    heads.load(MANY)
    assert tables.asked == [("segments", *TODAY), ("segments", *OLD)]


def test_whole_segments_are_read_some_at_once(tables, heads, monkeypatch):
    monkeypatch.setattr(journal_heads, "SEGMENTS_AT_ONCE", 6)
    heads.load(MANY)
    assert tables.asked[:2] == [("segments", *TODAY[:6]), ("segments", *TODAY[6:])]


def test_what_came_with_a_whole_segment_is_not_asked_for_again(tables, heads):
    put(tables, "E3", head(3182))
    heads.load(MANY)
    tables.asked.clear()
    heads.load(["E3", "E4"])
    assert (heads["E3"], heads["E4"], tables.asked) == (head(3182), None, [])


def test_the_heads_of_whole_segments_are_those_that_names_would_bring(tables, heads):
    for number, key in enumerate(MANY):
        put(tables, key, head((OLD if number % 3 else TODAY)[number], seq_nr=number + 1))
    heads.load(MANY)
    assert [(heads[key].segment, heads[key].seq_nr) for key in MANY] == [
        ((OLD if number % 3 else TODAY)[number], number + 1) for number in range(10)
    ]


@pytest.fixture
def _two_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_heads, "HEADS_OF_A_SEGMENT", 2)


@pytest.mark.usefixtures("_two_are_many")
def test_a_dense_segment_is_asked_by_name(tables, heads):
    for key in ("E3", "E03", "e3"):
        put(tables, key, head(3182, seq_nr=len(key)))
    heads.load(MANY)
    assert tables.asked == [
        ("segments", *TODAY),
        ("heads", 3182, "e3"),
        ("segments", *(s for s in OLD if s != 82)),
    ]
    assert heads["e3"] == head(3182, seq_nr=2)


@pytest.mark.usefixtures("_two_are_many")
def test_a_dense_segment_is_asked_by_name_every_time(tables, heads):
    for key in ("A", "B", "E3", "e3"):
        put(tables, key, head(3182))
    heads.load(MANY)
    heads.load(["E3"])
    assert (tables.asked[-1], heads["E3"]) == (("heads", 3182, "E3"), head(3182))


@pytest.mark.usefixtures("_two_are_many")
def test_where_most_of_the_first_segments_are_dense_all_are_asked_by_name(tables, heads, monkeypatch):
    monkeypatch.setattr(journal_heads, "SEGMENTS_AT_ONCE", 3)
    for segment in TODAY[:2]:
        put(tables, "A", head(segment))
        put(tables, "B", head(segment))
    heads.load(MANY)
    assert {asked[0] for asked in tables.asked[1:]} == {"heads"}
    assert tables.asked[0] == ("segments", *TODAY[:3])


# Whose heads are kept


def test_of_the_heads_of_other_partitions_only_the_names_are_kept(tables, heads):
    put(tables, "E3", head(3182, partition=3))
    heads.load(MANY)
    assert (len(heads), heads._ahead, heads._elsewhere) == (10, {}, {"E3"})


def test_the_heads_of_other_shares_are_not_kept(tables):
    heads = PartitionHeads(tables, "orders", 0, lambda key: key != "E3")
    put(tables, "E3", head(3182))
    heads.load(MANY)
    assert len(heads) == 10


def test_a_head_of_another_partition_is_kept_when_it_is_wanted(tables, heads):
    put(tables, "e3", head(3182, partition=3))
    heads.load(MANY)
    assert heads["e3"].partition == 3


def test_a_head_of_another_partition_is_noticed_also_when_it_is_wanted_later(tables, heads):
    put(tables, "E3", head(3182, partition=3))
    heads.load(MANY)
    heads.load(["E3"])
    assert heads["E3"].partition == 3


def test_an_entity_of_another_partition_is_refused_also_in_a_later_chunk(tables, monkeypatch):
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", 1)
    put(tables, "E3", head(3182, partition=3))
    with pytest.raises(BadMessage, match="kept for partition 3"):
        write(tables, " ".join(f"{key}:A1" for key in MANY), "E3:A2")


# What is to be written


def effect(given: Head | None, write_time: int | None, tombstone: HeadTombstone | None = None) -> Effect:
    return Effect("orders", "e0", (), (), tombstone, given, write_time, 1, 0, 0, (), 0, ())


def test_a_head_that_has_changed_is_carried_along(heads):
    heads.load(["e0"])
    heads.apply(effect(head(3179), 7))
    assert (heads["e0"], dict(heads.changed)) == (head(3179), {"e0": ChangedHead(None, head(3179), 7)})


def test_a_head_that_has_not_changed_is_not_written(heads):
    heads.load(["e0"])
    heads.apply(effect(None, None))
    assert heads.changed == {}


def test_the_tombstone_of_an_earlier_chunk_is_written_with_a_later_head(heads):
    purged = HeadTombstone((3179, 79), 7)
    heads.load(["e0"])
    heads.apply(effect(None, 7, purged))
    heads.apply(effect(head(3179), 8))
    assert heads.changed["e0"] == ChangedHead(purged, head(3179), 8)


def test_what_is_forgotten_is_read_again(tables, heads):
    heads.load(MANY)
    heads.apply(effect(head(3179), 7))
    heads.forget()
    assert (len(heads), heads.changed) == (0, {})
    put(tables, "e0", head(3179, seq_nr=9))
    heads.load(["e0"])
    assert heads["e0"].seq_nr == 9
