"""An entity in two Kafka partitions of one binding: each is a task of its own, and neither may win."""

from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass

import pytest
from tests.support.journal_samples import (
    KEY,
    TOPIC,
    ActionLog,
    JournalWorld,
    Lease,
    given_actions,
    journal_writer,
)
from tests.support.log_samples import given_binding
from tests.support.memory_journal import MemoryJournal, MemoryTables

from tidemark.delivery import split_entities
from tidemark.delivery.binding_steps import PartDone, write_part
from tidemark.delivery.deliver import Delivered
from tidemark.delivery.state.lease import WriterTicket
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import Part, Writer, Writing
from tidemark.log.files.parquet import LogFolder

pytestmark = pytest.mark.unit


def given_house(*bindings: tuple[str, ...]) -> JournalWorld:
    house = JournalWorld(ActionLog())
    for histories in bindings:
        house.actions.publish(*histories)
    return house


@dataclass
class AtOnce:
    """Writes parts as tasks do that run at the same time: none sees what the others write."""

    house: JournalWorld
    dies: int | None = None
    """The partition whose task is started once more, because its process was lost when it had written all."""
    fails: int | None = None
    """The partition whose task fails when it has written all, the first time."""
    passes: int = 0

    def __call__(
        self,
        writer: Writer,
        parts: Sequence[Part],
        log: LogFolder,
        acknowledged: Collection[int],
        ticket: WriterTicket,
    ) -> list[PartDone]:
        self.passes += 1
        before = deepcopy(self.house.journal)
        return [self._write(part, deepcopy(before), log, acknowledged, ticket) for part in parts]

    def _write(
        self,
        part: Part,
        seen: MemoryJournal,
        log: LogFolder,
        acknowledged: Collection[int],
        ticket: WriterTicket,
    ) -> PartDone:
        (partition,) = {file.partition for file in part.files}
        writer = journal_writer(MemoryTables(seen))
        done = write_part(writer, part, log, acknowledged, ticket)
        self.house.land(writer.tables.written)
        if partition == self.dies:
            return write_part(journal_writer(MemoryTables(seen)), part, log, acknowledged, ticket)
        if partition == self.fails and self.passes == 1:
            return PartDone(failure="no answer")
        return done


def delivered(house: JournalWorld, **fate: int) -> Delivered:
    return house.deliver(house.started(), write_parts=AtOnce(house, **fate))


def stopped_at(house: JournalWorld) -> int | None:
    gate = house.gate(house.process)
    return gate.first_id if gate and gate.cause is Cause.MESSAGE else None


def read(house: JournalWorld) -> list[int] | None:
    return house.journal.of(TOPIC).read(KEY, correlate=True)


def test_an_entity_that_begins_in_two_partitions_stops_the_writer():
    house = given_house(("j:A1 A1 A2 A3", "A4 A5"))
    gate = delivered(house).gate
    assert (stopped_at(house), house.position(house.process)) == (1, 0)
    assert gate is not None
    assert "is kept for partition 1, but offset 1 of partition 0 is about it too" in gate.reason


def test_readers_are_promised_nothing_of_it():
    house = given_house(("j:A1 A1 A2 A3", "A4 A5"))
    delivered(house)
    assert house.journal.pointers == {(TOPIC, 0): 0}


@pytest.mark.parametrize("way", ["in bulk", "singly"])
def test_one_after_the_other_it_stops_at_the_first_message_from_elsewhere(way):
    house = given_house(("A1 A2 A3", "A4 A5"))
    house.go(way)
    assert (stopped_at(house), read(house)) == (3, [1, 2, 3])


def test_a_resume_asks_a_person():
    house = given_house(("A1 A2 A3", "A4 A5"))
    delivered(house)
    house.go("singly")
    assert stopped_at(house) == 0


@pytest.mark.parametrize("way", ["in bulk", "singly"])
def test_a_person_may_let_one_side_pass(way):
    house = given_house(("A1 A2 A3", "A4 A5"))
    delivered(house)
    house.acknowledge(house.started(), 0, 2)
    house.go(way)
    assert (house.gate(house.process), read(house)) == (None, [4, 5])


def test_what_was_let_pass_leaves_no_rows():
    house = given_house(("A1 A2 A3", "A4 A5"))
    delivered(house)
    house.acknowledge(house.started(), 0, 2)
    assert [seq_nr for _, seq_nr, _ in house.journal.of(TOPIC).rows(KEY)] == [4, 5]


@pytest.mark.parametrize("fate", ["dies", "fails"])
@pytest.mark.parametrize("partition", [0, 1])
def test_it_is_noticed_when_a_task_is_started_once_more(fate, partition):
    """It finds what it wrote itself: nothing is new to it any more."""
    house = given_house(("A1 A2 A3", "A4 A5"))
    delivered(house, **{fate: partition})
    assert stopped_at(house) == 0


def test_it_is_noticed_beside_a_bad_message_of_another_entity():
    house = given_house(("A1 A2", "A3 j:A1!"))
    delivered(house)
    assert stopped_at(house) == 0


def test_later_bindings_are_noticed_by_the_head():
    house = given_house(("A1 A2 A3",), ("", "A4 A5"))
    delivered(house)
    assert (stopped_at(house), read(house)) == (3, [1, 2, 3])


def test_an_entity_that_was_purged_may_begin_in_another_partition():
    house = given_house(("A1 A2 P", "A1"))
    assert (delivered(house).gate, read(house)) == (None, [1])


def test_entities_of_one_partition_each_are_written_once():
    house = given_house(("A1 A2", "j:A1 j:A2"))
    tasks = AtOnce(house)
    done = house.deliver(house.started(), write_parts=tasks)
    assert (tasks.passes, done.gate) == (1, None)


class SameForAll:
    """A hash that tells no two keys apart."""

    def __init__(self, key: bytes, digest_size: int) -> None:
        self.size = digest_size

    def digest(self) -> bytes:
        return bytes(self.size)


def test_keys_that_only_look_the_same_cost_one_more_pass_and_count_once(monkeypatch):
    monkeypatch.setattr(split_entities, "blake2b", SameForAll)
    house = given_house(("A1 A2", "j:A1 j:A2"))
    tasks = AtOnce(house)
    done = house.deliver(house.started(), write_parts=tasks)
    assert (tasks.passes, done.gate) == (2, None)
    assert (done.total.written, done.total.details["entities"], done.total.begun) == (4, 2, ())


# What a part says


def begun_by(binding_slices: list[tuple[str, int, int, int]], part_keys: dict[str, int]) -> bytes:
    binding = given_binding(1_000_000, 0, *binding_slices)
    tables = MemoryTables(MemoryJournal())
    batch = given_actions(binding, "A1 j:A1 i:A1 i:P k:A2")
    part = Part(binding, (), **part_keys)
    return b"".join(
        one.entities for one in journal_writer(tables).write(part, Writing([batch], Lease(tables))).begun
    )


def test_a_part_tells_the_entities_that_begin_in_it_and_live():
    assert len(begun_by([(TOPIC, 0, 0, 5), (TOPIC, 1, 0, 5)], {})) == 2 * split_entities.BYTES_AN_ENTITY


def test_a_topic_of_one_partition_has_nothing_to_compare():
    assert begun_by([(TOPIC, 0, 0, 5), ("refunds", 0, 0, 5)], {}) == b""


def test_messages_that_come_one_at_a_time_find_the_head():
    assert begun_by([(TOPIC, 0, 0, 5), (TOPIC, 1, 0, 5)], {"last_id": 4}) == b""
