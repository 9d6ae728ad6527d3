"""The journal writer around its tables: what is asked first, where it stops, what it counts.

What the tables get for which actions is the fold's business and tested there; pointers, shares,
acknowledgements, heads and crashes have files of their own.
"""

from dataclasses import replace

import pyarrow as pa
import pytest
from structlog.testing import capture_logs
from tests.support.journal_samples import Lease, WriterInMemory, given_actions, journal_writer
from tests.support.log_samples import given_binding
from tests.support.memory_journal import MemoryJournal, MemoryTables, fails_after

from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.writer import BadMessage, Part, Writing, Written
from tidemark.journal_tables.cells import longest_key
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.log.model.manifest import LogFile
from tidemark.writers.journal import partition as journal_part
from tidemark.writers.journal import writer as journal
from tidemark.writers.shares import chunks

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 1, 7, 57))
PART = Part(BINDING, ())
NOTHING = {"events": 0, "entities": 0, "duplicates": 0, "hidden": 0, "metadata_dropped": 0}


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables(MemoryJournal())


def actions(history: str, first: int = 7) -> pa.RecordBatch:
    """Messages of orders/1: offset 7 has id 103."""
    return given_actions(BINDING, history, "orders", 1, first)


def write(tables: MemoryTables, history: str, writer: WriterInMemory | None = None) -> Written:
    return (writer or journal_writer(tables)).write(PART, Writing([actions(history)], Lease(tables)))


def offsets(tables: MemoryTables, key: str = "k") -> list[int]:
    """Of the rows that an entity has."""
    return [cells["offset"] for cells in tables.journal.of("orders").rows(key).values()]


def everything(tables: MemoryTables, *keys: str) -> dict[str, object]:
    reader = tables.journal.of("orders")
    return {key: (reader.head(key), reader.rows(key), reader.visible(key)) for key in keys}


def test_a_binding_is_one_part_for_every_kafka_partition(tables):
    first = LogFile("first", BINDING.t, "orders", 0, BINDING.base, BINDING.end, 1, 1, "")
    second = replace(first, partition=1, count=250_000)
    assert journal_writer(tables).cut(BINDING, [first, second]) == [
        Part(BINDING, (first,)),
        Part(BINDING, (second,)),
    ]


def test_every_action_is_written(tables):
    assert write(tables, "A1 A2 A3").written == 3
    assert offsets(tables) == [7, 8, 9]


def test_heads_are_written_after_all_rows(tables, monkeypatch):
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", 1)
    monkeypatch.setattr(journal_part, "ROWS_TOGETHER", 1)
    batches = [actions("A1"), actions("j:A1", 8), actions("A2", 9)]
    journal_writer(tables).write(PART, Writing(batches, Lease(tables)))
    assert tables.steps == ["row", "row", "row", "head", "head"]


def row_times(tables: MemoryTables) -> list[int]:
    return [one.write_time for one in tables.written if one.what == "row"]


def test_rows_of_an_entity_travel_together_also_from_different_chunks(tables, monkeypatch):
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", 1)
    batches = [actions("A1"), actions("j:A1", 8), actions("A2", 9)]
    journal_writer(tables).write(PART, Writing(batches, Lease(tables)))
    assert row_times(tables) == [1_000_004, 1_000_003, 1_000_005]


def test_rows_do_not_wait_for_more_when_their_payloads_are_large(tables, monkeypatch):
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", 1)
    monkeypatch.setattr(journal_part, "BYTES_TOGETHER", 1)
    batches = [actions("A1"), actions("j:A1", 8), actions("A2", 9)]
    journal_writer(tables).write(PART, Writing(batches, Lease(tables)))
    assert row_times(tables) == [1_000_003, 1_000_004, 1_000_005]


def test_tombstones_are_written_before_rows(tables):
    write(tables, "A1 D1 A2")
    assert tables.steps == ["tombstone", "row", "head"]


def test_no_head_is_written_when_rows_are_refused(tables):
    tables.fate = fails_after(1)
    with pytest.raises(ConnectionError):
        write(tables, "A1 A2")
    assert tables.steps == ["row"]


def test_the_lease_is_asked_before_rows_and_again_before_heads(tables):
    lease = Lease(tables)
    journal_writer(tables).write(PART, Writing([actions("A1 A2 j:A1")], lease))
    assert lease.asked == [0, 3]


def test_the_lease_is_asked_before_every_batch_of_a_hundred(tables):
    many = ",".join(str(number) for number in range(1, 151))
    lease = Lease(tables)
    journal_writer(tables).write(PART, Writing([actions(f"A{many}")], lease))
    assert len(lease.asked) == 3


def test_a_process_that_lost_the_writer_writes_nothing(tables):
    with pytest.raises(LeaseLost):
        journal_writer(tables).write(PART, Writing([actions("A1 A2 A3")], Lease(tables, lost_after=0)))
    assert tables.written == []


def test_a_process_that_loses_the_writer_on_the_way_writes_no_head(tables):
    with pytest.raises(LeaseLost):
        journal_writer(tables).write(PART, Writing([actions("A1 A2")], Lease(tables, lost_after=1)))
    assert tables.steps == ["row", "row"]


def test_writing_moves_no_pointer(tables):
    write(tables, "A1 A2 A3")
    assert tables.journal.pointers == {}


def test_what_is_at_or_below_the_pointer_is_dropped(tables):
    tables.journal.point("orders", 1, 8)
    done = write(tables, "A1 A2 A3")
    assert (done.written, done.ignored, offsets(tables)) == (1, 2, [9])


@pytest.mark.parametrize("bad", ["?", "A2!"])
def test_what_the_target_has_already_is_not_looked_at(tables, bad):
    tables.journal.point("orders", 1, 8)
    done = write(tables, f"A1 {bad} A3")
    assert (done.written, done.ignored, offsets(tables)) == (1, 2, [9])


def test_what_the_namespaces_keep_out_is_counted(tables):
    done = write(tables, "A1 A2 A3", journal_writer(tables, namespaces="^inv"))
    assert (done, tables.written) == (Written(filtered=3, details={"entities": 0}), [])


@pytest.mark.parametrize("other", ["N", "M"])
def test_a_message_that_changes_nothing_is_finished_with(tables, other):
    assert write(tables, other) == Written(ignored=1, details=NOTHING)
    assert tables.written == []


def test_events_and_entities_are_counted(tables):
    assert write(tables, "A1,2,3 j:A1 D2 i:D4").details == NOTHING | {"events": 4, "entities": 3}


def test_what_is_appended_below_delete_to_is_counted_and_not_written(tables):
    assert write(tables, "A1,2,3 D2 A2 A4").details == NOTHING | {
        "events": 5,
        "entities": 1,
        "duplicates": 1,
        "hidden": 1,
    }
    assert offsets(tables) == [7, 10]


def test_a_sequence_number_used_again_is_counted_and_both_rows_are_kept(tables):
    assert write(tables, "A1 A1").details["duplicates"] == 1
    assert offsets(tables) == [7, 8]


def test_the_first_ten_numbers_used_again_are_shown(tables):
    with capture_logs() as shown:
        write(tables, "A1 " * 13)
    assert [one["offset"] for one in shown] == [8, 9, 10, 11, 12, 13, 14, 15, 16, 17]


def test_two_messages_with_one_primary_key_are_both_sent(tables):
    """The newer one wins by its write time, in whatever order they arrive."""
    tables.order = reversed
    write(tables, "A1@5 A1@5")
    assert (tables.steps, offsets(tables)) == (["row", "row", "head"], [8])


@pytest.mark.parametrize(
    ("history", "id_"),
    [
        pytest.param("A1 ? A2", 104, id="a header"),
        pytest.param("A1 j:? A2", 104, id="a header of another entity"),
        pytest.param("A1 A2! A3", 104, id="a payload"),
        pytest.param("A1 j:A1! A2!", 104, id="two payloads"),
        pytest.param("A1 j:A1! ?", 104, id="a payload before a header"),
        pytest.param("A1 ? j:A1!", 104, id="a header before a payload"),
        pytest.param("? A1 A2", 103, id="the first of all"),
        pytest.param("A1 A2 A3!", 105, id="the last of all"),
    ],
)
def test_the_lowest_bad_message_is_blamed(tables, history, id_):
    with pytest.raises(BadMessage) as wall:
        write(tables, history)
    assert (wall.value.id, wall.value.offset, wall.value.partition) == (id_, id_ - 96, 1)


@pytest.mark.parametrize("bad", ["?", "j:?", "A3!", "j:A1!"])
def test_everything_below_a_bad_message_is_written_with_its_heads(tables, bad):
    with pytest.raises(BadMessage):
        write(tables, f"A1 A2 {bad} A3 j:A2")
    head = tables.journal.of("orders").head("k")
    assert (offsets(tables), head.seq_nr, head.offset) == ([7, 8], 2, 8)


@pytest.mark.parametrize("bad", ["?", "j:?", "A3!", "j:A1!"])
def test_nothing_at_or_above_a_bad_message_is_written(tables, bad):
    with pytest.raises(BadMessage):
        write(tables, f"A1 A2 {bad} A3 j:A2 k:P")
    assert max(one.write_time for one in tables.written) == 1_000_004
    assert everything(tables, "j") == {"j": (None, {}, None)}


def test_everything_below_a_bad_message_is_written_also_where_it_comes_in_a_later_chunk(tables, monkeypatch):
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", 1)
    batches = [actions("A1"), actions("j:A1", 8), actions("?", 9), actions("A2", 10)]
    with pytest.raises(BadMessage):
        journal_writer(tables).write(PART, Writing(batches, Lease(tables)))
    assert (offsets(tables), offsets(tables, "j")) == ([7], [8])
    assert tables.steps == ["row", "row", "head", "head"]


def test_the_wall_says_which_entity_and_what_is_wrong(tables):
    with pytest.raises(BadMessage, match=r"orders/journal: orders/1, offset 8 \(id 104\): entity k: .* Look"):
        write(tables, "A1 A2!")


def test_an_entity_of_another_partition_is_refused(tables):
    elsewhere = given_binding(500_000, 0, ("orders", 3, 0, 1))
    earlier = given_actions(elsewhere, "A1", "orders", 3)
    journal_writer(tables).write(Part(elsewhere, ()), Writing([earlier], Lease(tables)))
    with pytest.raises(BadMessage, match="kept for partition 3, but offset 8 of partition 1 is about it too"):
        write(tables, "j:A1 A2")
    assert (offsets(tables), offsets(tables, "j")) == ([0], [7])


def keyed(history: str, key: str) -> pa.RecordBatch:
    """The same, the last one with another key."""
    *others, last = actions(history).to_pylist()
    return pa.RecordBatch.from_pylist([*others, last | {"key": key.encode()}], LOG_SCHEMA)


@pytest.mark.parametrize("action", ["A1", "D1", "P"])
@pytest.mark.parametrize("character", ["k", "\N{GREEK SMALL LETTER KAPPA}"])
def test_a_key_that_cassandra_has_no_place_for_is_a_bad_message(tables, action, character):
    key = character * (longest_key("orders") // len(character.encode()) + 1)
    with pytest.raises(BadMessage, match=r"offset 8 \(id 104\): its key is longer than the 65512 bytes"):
        journal_writer(tables).write(PART, Writing([keyed(f"A1 {action}", key)], Lease(tables)))
    assert (offsets(tables), offsets(tables, key)) == ([7], [])


def test_the_longest_key_is_written(tables):
    key = "k" * longest_key("orders")
    journal_writer(tables).write(PART, Writing([keyed("A1 A1", key)], Lease(tables)))
    assert offsets(tables, key) == [8]


def test_what_is_no_action_may_have_a_key_of_any_length(tables):
    batch = keyed("A1 N", "k" * 100_000)
    assert journal_writer(tables).write(PART, Writing([batch], Lease(tables))).ignored == 1


def test_a_message_on_its_own_is_written_like_many(tables):
    single = Part(BINDING, (), first_id=104, last_id=104)
    journal_writer(tables).write(single, Writing([actions("A1 A2 A3").slice(1, 1)], Lease(tables)))
    assert (offsets(tables), tables.steps) == ([8], ["row", "head"])


def test_every_message_keeps_its_own_headers(tables):
    given = [
        one | {"key": key}
        for one, key in zip(actions("A1 A1 A1").to_pylist(), (b"a", b"b", b"c"), strict=True)
    ]
    for one, names in zip(given, (["x"], [], ["y", "z"]), strict=True):
        one["headers"] += [{"name": name, "value": name.encode()} for name in names]
    batch = pa.RecordBatch.from_pylist(
        [given[0], actions("N").to_pylist()[0] | {"headers": None}, *given[1:]], LOG_SCHEMA
    )
    for part in (batch.slice(0, 2), batch.slice(2, 1), batch.slice(3, 1)):
        journal_writer(tables).write(PART, Writing([part], Lease(tables)))
    found = {key: next(iter(tables.journal.of("orders").rows(key).values()))["headers"] for key in "abc"}
    assert found == {"a": {"x": "x"}, "b": {}, "c": {"y": "y", "z": "z"}}


HISTORY = "A1 A2,3 j:A1 D2 i:D5 i:A6 P A1 j:A2 P j:D1 A1~30 A2 i:P j:A3 i:A1 D1 A3"


@pytest.mark.parametrize("most_heads", [0, 1, 200_000])
@pytest.mark.parametrize("together", [1, 3, 100_000])
@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
def test_chunks_and_early_heads_change_nothing(tables, monkeypatch, at_once, together, most_heads):
    whole = MemoryTables(MemoryJournal())
    write(whole, HISTORY, journal_writer(whole, segment_size=2))
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", at_once)
    monkeypatch.setattr(journal_part, "ROWS_TOGETHER", together)
    monkeypatch.setattr(journal_part, "MOST_HEADS", most_heads)
    batches = [actions(one, 7 + number) for number, one in enumerate(HISTORY.split())]
    journal_writer(tables, segment_size=2).write(PART, Writing(batches, Lease(tables)))
    assert everything(tables, "i", "j", "k") == everything(whole, "i", "j", "k")


def test_with_too_many_heads_in_memory_they_are_written_early(tables, monkeypatch):
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", 1)
    monkeypatch.setattr(journal_part, "MOST_HEADS", 1)
    batches = [actions("A1"), actions("j:A1", 8), actions("i:A1", 9)]
    journal_writer(tables).write(PART, Writing(batches, Lease(tables)))
    assert tables.steps == ["row", "row", "head", "head", "row", "head"]


def test_a_batch_that_is_larger_than_a_chunk_is_taken_in_pieces():
    found = list(chunks([actions("A1 A2 A3 A4 A5")], 2, journal.BYTES_AT_ONCE))
    assert [chunk["offset"].to_pylist() for chunk in found] == [[7, 8], [9, 10], [11]]
