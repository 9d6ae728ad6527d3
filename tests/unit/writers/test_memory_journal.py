"""The stand-in for a journal's tables does what the tests of the writer rely on."""

import inspect
from contextlib import suppress

import pytest
from tests.support.faults import Killed
from tests.support.memory_journal import (
    MemoryBulk,
    MemoryJournal,
    MemoryTables,
    Write,
    dies_after,
    fails_after,
)

from tidemark.cassandra.bulk.writer import BulkWriter
from tidemark.journal.head import Head
from tidemark.journal_tables import heads as journal_heads
from tidemark.journal_tables.statements import JournalTables

pytestmark = pytest.mark.unit


def head(seq_nr: int) -> Head:
    return Head(7, 0, 5, 10_000, seq_nr, None, 0, 0)


def writes(count: int) -> list[Write]:
    return [Write(str(number), "k", number, lambda journal: None) for number in range(count)]


def parameters(function: object) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize(
    "name",
    [name for name in vars(JournalTables) if not name.startswith("_") and name != "of"],
)
def test_it_has_the_methods_of_the_real_tables(name):
    assert parameters(getattr(MemoryTables, name)) == parameters(getattr(JournalTables, name))


@pytest.mark.parametrize("name", ["flush", "__enter__", "__exit__"])
def test_its_bulk_has_the_methods_of_the_real_one(name):
    assert parameters(getattr(MemoryBulk, name)) == parameters(getattr(BulkWriter, name))


def test_nothing_arrives_before_it_is_flushed():
    tables = MemoryTables(MemoryJournal())
    with tables.bulk() as bulk:
        bulk.add(writes(1)[0])
        assert tables.written == []
    assert tables.steps == ["0"]


def test_what_was_sent_before_an_error_arrives_and_what_was_gathered_does_not():
    tables = MemoryTables(MemoryJournal())
    with suppress(ValueError), tables.bulk() as bulk:
        for write in writes(101):
            bulk.add(write)
        raise ValueError
    assert len(tables.written) == 100


def test_what_is_under_way_arrives_in_the_order_that_was_asked_for():
    tables = MemoryTables(MemoryJournal(), order=reversed)
    with tables.bulk() as bulk:
        for write in writes(2):
            bulk.add(write)
        bulk.flush()
        bulk.add(writes(3)[2])
    assert tables.steps == ["1", "0", "2"]


@pytest.mark.parametrize(("fate", "error"), [(dies_after(1), Killed), (fails_after(1), ConnectionError)])
def test_a_process_ends_after_so_many_writes(fate, error):
    tables = MemoryTables(MemoryJournal(), fate)
    bulk = tables.bulk()
    for write in writes(3):
        bulk.add(write)
    with pytest.raises(error):
        bulk.flush()
    assert tables.steps == ["0"]


def test_of_a_segment_only_the_first_heads_are_read(monkeypatch):
    monkeypatch.setattr(journal_heads, "HEADS_OF_A_SEGMENT", 2)
    tables = MemoryTables(MemoryJournal())
    for key in ("c", "a", "b"):
        tables.journal.of("orders").insert_head(key, head(1), 0)
    assert [row.id for row in tables.read_segments("orders", [[6, 7]])] == ["a", "b"]


def test_a_pointer_that_comes_late_changes_nothing():
    journal = MemoryJournal()
    journal.point("orders", 0, 8, write_time=8)
    journal.point("orders", 0, 5, write_time=5)
    assert journal.pointers == {("orders", 0): 8}
