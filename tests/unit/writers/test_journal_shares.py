"""A large file is shared out by entity: every message is one part's, and so is every entity."""

from collections import Counter
from functools import reduce
from operator import add

import pyarrow as pa
import pytest
from tests.support.journal_samples import Lease, given_actions, journal_writer
from tests.support.log_samples import given_binding
from tests.support.memory_journal import MemoryJournal, MemoryTables

from tidemark.delivery.writer import BadMessage, Part, Writing, Written
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.log.model.manifest import LogFile
from tidemark.writers.journal import writer as journal

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 0, ("orders", 0, 0, 30))
HISTORY = "a:A1 b:A1 c:A1 f:A1 g:A1 i:A1 a:A2 b:D1 c:P f:A2 g:A2 i:M a:N b:A2 c:A1 f:P g:D2 i:A2"
KEYS = "abcfgi"
"""Two for each of three parts: a and c, g and i, b and f."""


def file_of(count: int) -> LogFile:
    return LogFile("file", BINDING.t, "orders", 0, 0, count - 1, count, 1, "")


def given_messages() -> pa.RecordBatch:
    return given_actions(BINDING, HISTORY)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> MemoryTables:
    """Seven messages are enough for a part."""
    monkeypatch.setattr(journal, "MESSAGES_A_PART", 7)
    return MemoryTables(MemoryJournal())


def write_shares(tables: MemoryTables, messages: pa.RecordBatch) -> list[tuple[Written, set[str]]]:
    """What was done with every part, and the entities it wrote."""
    writer, done = journal_writer(tables, segment_size=2), []
    for part in writer.cut(BINDING, [file_of(messages.num_rows)]):
        tables.written = []
        written = writer.write(part, Writing([messages], Lease(tables)))
        done.append((written, {one.key for one in tables.written}))
    return done


@pytest.mark.parametrize(("count", "numbers"), [(7, [None]), (8, [0, 1]), (14, [0, 1]), (15, [0, 1, 2])])
def test_a_file_is_as_many_parts_as_it_needs(tables, count, numbers):
    parts = journal_writer(tables).cut(BINDING, [file_of(count)])
    assert parts == [Part(BINDING, (file_of(count),), number) for number in numbers]


def test_every_message_is_counted_by_one_part(tables):
    done = write_shares(tables, given_messages())
    assert [(one.written, one.ignored) for one, _ in done] == [(5, 1), (5, 1), (6, 0)]


def test_what_the_parts_count_adds_up_to_what_one_would(tables, monkeypatch):
    shared = [one for one, _ in write_shares(tables, given_messages())]
    monkeypatch.setattr(journal, "MESSAGES_A_PART", 100)
    ((whole, _),) = write_shares(MemoryTables(MemoryJournal()), given_messages())
    assert reduce(add, shared) == whole


def test_every_entity_is_written_by_one_part(tables):
    keys = Counter(key for _, keys in write_shares(tables, given_messages()) for key in keys)
    assert keys == Counter(KEYS)


def test_the_parts_write_what_one_would(tables, monkeypatch):
    write_shares(tables, given_messages())
    monkeypatch.setattr(journal, "MESSAGES_A_PART", 100)
    whole = MemoryTables(MemoryJournal())
    write_shares(whole, given_messages())
    shared, one = tables.journal.of("orders"), whole.journal.of("orders")
    assert {key: (shared.head(key), shared.rows(key)) for key in KEYS} == {
        key: (one.head(key), one.rows(key)) for key in KEYS
    }


def test_keys_that_java_reads_as_one_entity_are_one_parts(tables):
    """None of these is UTF-8, and all are decoded to the same two replacement characters."""
    wrong = [b"\xff\xff", b"\xfe\xff", b"\xfd\xfc", b"\xff\xfe"]
    given = given_actions(BINDING, "A1 A2 A3 A4 a:A1 b:A1 c:A1 d:A1").to_pylist()
    messages = [one | {"key": key} for one, key in zip(given, wrong, strict=False)] + given[4:]
    done = write_shares(tables, pa.RecordBatch.from_pylist(messages, schema=LOG_SCHEMA))
    assert Counter(key for _, keys in done for key in keys) == Counter(["\ufffd\ufffd", *"abcd"])
    assert tables.journal.of("orders").head("\ufffd\ufffd").seq_nr == 4


def test_messages_without_an_entity_are_the_first_parts(tables):
    given = [one | {"key": None} for one in given_actions(BINDING, "A1 " * 8).to_pylist()]
    done = write_shares(tables, pa.RecordBatch.from_pylist(given, schema=LOG_SCHEMA))
    assert [one.ignored for one, _ in done] == [8, 0]


def test_messages_that_are_kept_out_are_counted_once(tables):
    writer = journal_writer(tables, namespaces="^inv")
    parts = writer.cut(BINDING, [file_of(18)])
    done = [writer.write(part, Writing([given_messages()], Lease(tables))) for part in parts]
    assert (len(done), sum(one.filtered for one in done), tables.written) == (3, 18, [])


def test_a_bad_message_stops_the_part_of_its_entity_only(tables):
    """The others may go on: what they write above the wall is redelivered with the same result."""
    messages = given_actions(BINDING, "a:A1 b:A1 c:A1 d:A1 e:A1 a:? a:A2 b:A2 c:A2 d:A2 e:A2")
    writer, walls = journal_writer(tables), []
    for part in writer.cut(BINDING, [file_of(11)]):
        try:
            writer.write(part, Writing([messages], Lease(tables)))
        except BadMessage as wall:
            walls.append(wall.id)
    found = {key: tables.journal.of("orders").head(key).seq_nr for key in "abcde"}
    assert (walls, found["a"], max(found.values())) == ([5], 1, 2)
