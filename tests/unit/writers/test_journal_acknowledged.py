"""What a person lets pass: which messages may be, and what is taken back of them."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.faults import Killed
from tests.support.journal_samples import (
    ActionLog,
    JournalWorld,
    Lease,
    WriterInMemory,
    given_actions,
    journal_writer,
)
from tests.support.log_samples import given_binding
from tests.support.memory_journal import MemoryJournal, MemoryTables, fails_after

from tidemark.delivery.operator.acknowledge import NotSettled
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import Part, Writing

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 100, ("orders", 0, 0, 20), ("orders", 1, 0, 20))


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables(MemoryJournal())


def write(tables: MemoryTables, history: str, partition: int = 0) -> None:
    batch = given_actions(BINDING, history, partition=partition)
    journal_writer(tables, segment_size=2).write(Part(BINDING, ()), Writing([batch], Lease(tables)))


def message(history: str) -> Mapping[str, Any]:
    """The last one of a history."""
    last: Mapping[str, Any] = given_actions(BINDING, history).to_pylist()[-1]
    return last


def offsets(tables: MemoryTables, key: str = "k") -> list[int]:
    return [cells["offset"] for cells in tables.journal.of("orders").rows(key).values()]


# Which messages may pass


@pytest.mark.parametrize("action", ["A1", "M", "N", "?", "A1!"])
def test_what_writes_only_rows_or_nothing_may_pass(tables, action):
    assert journal_writer(tables).refuses_acknowledgement(message(action)) is None


@pytest.mark.parametrize("action", ["D1", "P"])
def test_what_may_be_applied_half_can_only_be_tried_again(tables, action):
    refusal = journal_writer(tables).refuses_acknowledgement(message(action))
    assert refusal == "a delete or a purge may be applied half by now; it can only be tried again."


@pytest.mark.parametrize("action", ["D1", "P"])
def test_what_would_delete_in_another_partition_than_the_entitys_may_pass(tables, action):
    write(tables, "N N A1", partition=1)
    assert journal_writer(tables).refuses_acknowledgement(message(action)) is None


@pytest.mark.parametrize("action", ["A1", "D1", "P"])
def test_what_cassandra_has_no_place_for_may_pass_and_has_no_rows(tables, action):
    too_long = {**message(action), "key": b"k" * 70_000}
    assert journal_writer(tables).refuses_acknowledgement(too_long) is None
    journal_writer(tables).discard(too_long)
    assert tables.written == []


@pytest.mark.parametrize("action", ["D900000", "P"])
def test_what_would_delete_more_than_is_done_at_once_may_pass(tables, action):
    write(tables, "A1 A900000")
    assert journal_writer(tables, segment_size=2).refuses_acknowledgement(message(f"N N {action}")) is None


@pytest.mark.parametrize("history", ["A1", "A1 A2"])
def test_an_append_that_is_applied_already_may_not_pass(tables, history):
    write(tables, history)
    refusal = journal_writer(tables).refuses_acknowledgement(message("A1"))
    assert refusal == "it is applied already. Resume: nothing of it is left to do."


def test_an_append_beyond_the_head_may_pass(tables):
    write(tables, "A1")
    assert journal_writer(tables).refuses_acknowledgement(message("A1 A2")) is None


def test_an_append_of_an_entity_of_another_partition_may_pass(tables):
    write(tables, "N N A1", partition=1)
    assert journal_writer(tables).refuses_acknowledgement(message("A1")) is None


# What is taken back


def given_rows(tables: MemoryTables, history: str, rows: int) -> None:
    """An attempt that came as far as so many rows."""
    tables.fate = fails_after(len(tables.written) + rows)
    with pytest.raises(ConnectionError):
        write(tables, history)
    tables.fate = lambda done: None


def test_the_rows_of_an_append_are_removed(tables):
    given_rows(tables, "A1,2,3", rows=3)
    journal_writer(tables, segment_size=2).discard(message("A1,2,3"))
    assert offsets(tables) == []


def test_the_rows_of_other_appends_stay(tables):
    write(tables, "A1 A2")
    given_rows(tables, "A1 A2 A3,4 A5 j:A1", rows=4)
    journal_writer(tables, segment_size=2).discard(message("A1 A2 A3,4"))
    assert (offsets(tables), offsets(tables, "j")) == ([0, 1, 3], [4])


def test_rows_are_removed_where_the_head_says_that_they_are(tables):
    """The segment size is the head's, not the one that is declared now."""
    write(tables, "A1 A2")
    given_rows(tables, "A1 A2 A3,4,5", rows=3)
    journal_writer(tables, segment_size=100).discard(message("A1 A2 A3,4,5"))
    assert offsets(tables) == [0, 1]


def test_rows_that_arrive_late_stay_removed(tables):
    given_rows(tables, "A1,2", rows=2)
    journal_writer(tables, segment_size=2).discard(message("A1,2"))
    for late in tables.written[:2]:
        late.do(tables.journal)
    assert offsets(tables) == []


def test_rows_that_arrive_only_after_they_were_taken_back_stay_removed(tables):
    """A write that timed out may be with one replica, and come to the others hours later."""
    elsewhere = MemoryTables(MemoryJournal())
    given_rows(elsewhere, "A1,2", rows=2)
    journal_writer(tables, segment_size=2).discard(message("A1,2"))
    for late in elsewhere.written:
        late.do(tables.journal)
    assert offsets(tables) == []


def test_the_row_of_an_earlier_message_with_the_same_primary_key_stays(tables):
    """A record that a producer has sent twice has the same number and the same time."""
    write(tables, "A1@5")
    journal_writer(tables, segment_size=2).discard(message("A1@5 A1@5"))
    assert offsets(tables) == [0]


@pytest.mark.parametrize("action", ["?", "A1!", "D1", "P", "M", "N"])
def test_what_has_no_rows_is_let_alone(tables, action):
    write(tables, "A1")
    tables.written.clear()
    journal_writer(tables).discard(message(f"A1 {action}"))
    assert tables.written == []


def test_the_rows_that_another_partition_has_of_the_entity_stay(tables):
    write(tables, "N A2", partition=1)
    journal_writer(tables).discard(message("A2"))
    assert offsets(tables) == [1]


# With the real delivery


def given_stopped(*bindings: str, writes: int) -> JournalWorld:
    """The target took so many writes of the last binding, and works again."""
    log = ActionLog()
    for history in bindings[:-1]:
        log.publish(history)
    house = JournalWorld(log)
    house.go("in bulk")
    log.publish(bindings[-1])
    house.go("in bulk", fails_after(writes))
    assert house.gate(house.process) is not None
    return house


def finished(house: JournalWorld) -> JournalWorld:
    house.go("singly")
    house.go("in bulk")
    assert (house.position(house.process), house.gate(house.process)) == (house.actions.manifest.end, None)
    return house


def visible(house: JournalWorld, key: str = "k") -> list[int] | None:
    """The sequence numbers that a reader gets who looks at the incarnation."""
    return house.journal.of("orders").read(key, correlate=True)


def test_an_append_that_was_let_pass_is_never_seen():
    house = given_stopped("A1", "A2 A3", writes=2)
    house.acknowledge(house.started(), 1)
    assert visible(finished(house)) == [1, 3]


@pytest.mark.parametrize("way", ["in bulk", "singly", "mixed"])
def test_it_is_never_seen_when_the_target_was_still_broken_either(way):
    house = given_stopped("A1", "A2 A3", writes=2)
    with pytest.raises(NotSettled):
        house.acknowledge(house.started(fails_after(0)), 1)
    house.go(way)
    assert visible(finished(house)) == [1, 3]


@pytest.mark.parametrize("way", ["in bulk", "singly", "mixed"])
def test_it_is_never_seen_when_the_command_died_once_that_was_recorded(way, monkeypatch):
    house = given_stopped("A1", "A2 A3", writes=2)
    monkeypatch.setattr(WriterInMemory, "discard", lambda writer, message: house.die())
    with pytest.raises(Killed):
        house.acknowledge(house.started(), 1)
    monkeypatch.undo()
    house.live_again()
    house.go(way)
    assert visible(finished(house)) == [1, 3]


@pytest.mark.parametrize("way", ["in bulk", "singly"])
def test_while_the_target_is_broken_nothing_moves(way):
    house = given_stopped("A1", "A2 A3", writes=2)
    with pytest.raises(NotSettled):
        house.acknowledge(house.started(fails_after(0)), 1)
    house.go(way, fails_after(0))
    gate = house.gate(house.process)
    assert (house.position(house.process), gate and gate.cause) == (0, Cause.TARGET)


def test_the_pointer_passes_a_message_that_was_let_pass():
    house = given_stopped("A1", "A2 A3", writes=2)
    house.acknowledge(house.started(), 1)
    assert house.journal.pointers == {("orders", 0): 1}


def test_an_append_that_was_let_pass_is_not_written_after_a_rewind_either():
    house = given_stopped("A1", "A2 A3", writes=2)
    house.acknowledge(house.started(), 1)
    house = finished(house)
    house.rewind("journal", -1)
    assert visible(finished(house)) == [1, 3]


def test_an_append_that_was_let_pass_is_not_written_when_empty_tables_are_filled_again():
    house = given_stopped("A1", "A2 A3", writes=2)
    house.acknowledge(house.started(), 1)
    house = finished(house)
    house.journal = MemoryJournal()
    house.rewind("journal", -1)
    assert visible(finished(house)) == [1, 3]


@pytest.mark.parametrize("action", ["D900000", "P"])
def test_a_journal_goes_on_after_a_deletion_that_cannot_be_done(action):
    log = ActionLog()
    log.publish(f"A1 A900000 {action} A900001")
    house = JournalWorld(log, segment_size=2)
    house.go("in bulk")
    house.acknowledge(house.started(), 2)
    assert finished(house).told()["k"]["seq_nr"] == 900_001


def test_an_append_that_a_dead_process_has_applied_cannot_pass():
    house = given_stopped("A1", "A2 j:A1", writes=3)
    with pytest.raises(NotPossible, match="it is applied already"):
        house.acknowledge(house.started(), 1)


def test_the_first_append_of_an_entity_cannot_pass_when_others_were_written_with_it():
    """The attempt wrote both rows, with the ``record_id`` that the first one gives."""
    house = given_stopped("j:A1", "A1 A2", writes=2)
    with pytest.raises(NotPossible, match="it begins its entity"):
        house.acknowledge(house.started(), 1)
    assert visible(finished(house)) == [1, 2]


def test_the_first_append_of_an_entity_cannot_pass_when_only_a_row_far_from_its_own_was_written():
    """Batches do not wait for each other, so that the last row of an attempt may be the only one."""
    log = ActionLog()
    log.publish("A1 A2 A3 A4 A5")
    house = JournalWorld(log, segment_size=2)
    house.go("in bulk", fails_after(1), reversed)
    with pytest.raises(NotPossible, match="it begins its entity"):
        house.acknowledge(house.started(), 0)
