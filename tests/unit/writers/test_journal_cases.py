"""The contract's 71 replication cases through the real writer: what the fold makes of them arrives as such.

As in the fold's own tests, each runs with its own segment size and with 2, 10 and 10000, and with a process
that dies after every single write of its last poll. A poll is a part: its records, and then its pointer.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.support.case_files import REPLICATION, Source, load
from tests.support.faults import Killed
from tests.support.journal_samples import Lease, journal_writer
from tests.support.log_samples import given_binding
from tests.support.memory_journal import Fate, MemoryJournal, MemoryTables, dies_after
from tests.support.replication_cases import expectation, told
from tests.support.writer_model import Delivered, Writer

from tidemark.delivery.writer import BadMessage, Part, Writing
from tidemark.log.files.parquet import LOG_SCHEMA

pytestmark = pytest.mark.unit


class Replicator:
    """The tables of a case, and the real writer in front of them."""

    def __init__(self, case: dict[str, Any], size: int | None) -> None:
        self.case, self.source = case, Source()
        initial = load(case, case["initial"], size)
        self.size, self.topic = initial.segment_size, initial.topic
        self.zone = "Etc/GMT-3" if case["config"]["zoneOffsetHours"] else "UTC"
        self.journal = MemoryJournal()
        self.journal.journal, self.journal.metajournal = initial.journal, initial.metajournal
        for partition, offset in initial.pointers.items():
            self.journal.point(self.topic, partition, offset)

    def deliver(self, poll: dict[str, Any], fate: Fate = lambda done: None) -> bool:
        """Whether a poll went through."""
        records, tables = self.source.deliver(poll), MemoryTables(self.journal, fate)
        slice_ = (self.topic, poll["partition"], records[0].offset, records[-1].offset + 1)
        binding = given_binding(records[0].write_time, records[0].id, slice_)
        writer, reached = journal_writer(tables, self.zone, segment_size=self.size), binding.end
        try:
            writer.write(Part(binding, ()), Writing([batch_of(self.topic, records)], Lease(tables)))
        except BadMessage as wall:
            reached = binding.id_of(wall.topic, wall.partition, wall.offset) - 1
        writer.settle(binding, reached, Lease(tables))
        return reached == binding.end

    def deliver_all(self, polls: Sequence[dict[str, Any]]) -> bool:
        """Whether every poll went through; the first that does not is the last."""
        return all(self.deliver(poll) for poll in polls)

    def told(self) -> dict[str, Any]:
        reader: Writer = self.journal.of(self.topic)
        reader.pointers = {partition: offset for (_, partition), offset in self.journal.pointers.items()}
        return told(reader, self.case)


def batch_of(topic: str, records: Sequence[Delivered]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": one.id,
                "t": one.bound_at,
                "write_time": one.write_time,
                "topic": topic,
                "partition": one.partition,
                "offset": one.offset,
                "timestamp": one.timestamp,
                "timestamp_type": 0,
                "key": one.key,
                "value": one.value,
                "headers": [{"name": name, "value": value} for name, value in one.headers],
                "namespace": topic,
            }
            for one in records
        ],
        schema=LOG_SCHEMA,
    )


@pytest.mark.parametrize("size", [None, 2, 10, 10_000], ids=lambda size: f"size_{size or 'own'}")
@pytest.mark.parametrize("name", REPLICATION)
def test_replication_case(name: str, size: int | None) -> None:
    case = REPLICATION[name]
    expected, replicator = expectation(case), Replicator(case, size)
    assert replicator.deliver_all(case["polls"]) == (expected["outcome"] != "stalled")
    if "replay_polls" in case:
        assert replicator.deliver_all(case["replay_polls"])
    assert replicator.told() == told(load(case, expected, size), case)


@pytest.mark.parametrize("name", REPLICATION)
def test_replication_case_survives_death_after_any_write(name: str) -> None:
    case = REPLICATION[name]
    expected = told(load(case, expectation(case), None), case)
    *before, last = case["polls"]
    writes, died = 0, True
    while died:
        replicator = Replicator(case, None)
        replicator.deliver_all(before)
        try:
            replicator.deliver(last, dies_after(writes))
            died = False
        except Killed:
            replicator.deliver_all(case.get("replay_polls", [last]))
        assert replicator.told() == expected, f"died after {writes} writes"
        writes += 1
