"""An entity that begins in two Kafka partitions, written by two tasks at once into real Cassandra."""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from tests.support.services.journal_runs import read_pointers
from tests.support.services.journal_world import CassandraJournalWorld, Record, given_keyspace

from tidemark.delivery.binding_steps import PartDone, write_part
from tidemark.delivery.state.lease import WriterTicket
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import Part, Writer
from tidemark.journal.action import append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events
from tidemark.journal_tables.heads import PartitionHeads
from tidemark.log.files.parquet import LogFolder
from tidemark.writers.garbage_collection import seldom_collecting

pytestmark = pytest.mark.system

TOPIC = "enlarged"


@pytest.fixture
def house(services: Any, tmp_path: Path) -> Iterator[CassandraJournalWorld]:
    with given_keyspace(services.cassandra, TOPIC) as keyspace:
        yield CassandraJournalWorld(tmp_path, services.cassandra, keyspace)


def given_append(key: str, partition: int, offset: int, seq_nr: int) -> Record:
    events = Events((EncodedEvent(seq_nr, (), "text", f"event {seq_nr}"),))
    return Record(TOPIC, partition, offset, *write_action(append(key, seq_nr, events)))


def write_at_once(
    writer: Writer, parts: Sequence[Part], log: LogFolder, acknowledged: Collection[int], ticket: WriterTicket
) -> list[PartDone]:
    """All parts at the same time: none writes before all have looked for heads."""
    looked, load = Barrier(len(parts), timeout=30), PartitionHeads.load

    def wait_for_others(heads: PartitionHeads, keys: Any) -> None:
        load(heads, keys)
        looked.wait()

    # Tasks are processes: threads would leave each other's settings behind.
    with seldom_collecting(), pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(parts)) as pool:
        patch.setattr(PartitionHeads, "load", wait_for_others)
        return list(pool.map(lambda part: write_part(writer, part, log, acknowledged, ticket), parts))


def test_it_stops_its_writer_and_readers_are_promised_nothing_of_it(house: CassandraJournalWorld) -> None:
    old = [given_append("other", 0, 0, 1), *(given_append("k", 0, n, n) for n in (1, 2, 3))]
    new = [given_append("k", 1, n, n + 4) for n in (0, 1)]
    house.publish(1_000_000, [*old, *new])

    gate = house.deliver(write_at_once).gate

    assert gate is not None
    assert (gate.cause, gate.first_id, house.state.position) == (Cause.MESSAGE, 1, 0)
    assert "is kept for partition 1, but offset 1 of partition 0 is about it too" in gate.reason
    assert read_pointers(house.session, house.keyspace, TOPIC) == {0: 0}


def test_entities_of_one_partition_each_are_written_at_once(house: CassandraJournalWorld) -> None:
    house.publish(1_000_000, [given_append("j", 0, 0, 1), given_append("k", 1, 0, 1)])
    assert house.deliver(write_at_once).gate is None
    assert read_pointers(house.session, house.keyspace, TOPIC) == {0: 0, 1: 0}
