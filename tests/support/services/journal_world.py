"""A journal writer on real Cassandra, over a log whose messages and control plane are the test's own."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
from tests.support.log_samples import SEGMENT_BYTES, add_binding, captured_of, write_file
from tests.support.log_world import PIPELINE, ControlPlaneWorld

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.binding_steps import WriteParts, write_parts_here
from tidemark.delivery.deliver import Delivered, deliver_again, deliver_to
from tidemark.delivery.operator.actions import OperatorActions
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.writer_state import WriterState
from tidemark.log.bindings.door import Bindings
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.publish import publish
from tidemark.pipeline.model import JournalDeclaration
from tidemark.writers.journal.writer import JournalWriter

WRITER = "cassandra"


class Record(NamedTuple):
    """A Kafka record and where it was."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass
class CassandraJournalWorld(ControlPlaneWorld):
    """One pipeline with one journal writer."""

    root: Path
    connection: CassandraConnection
    keyspace: str
    segment_size: int = 10_000
    zone: str = "UTC"
    segment_bytes: int = SEGMENT_BYTES
    consensus: MemoryConsensus = field(default_factory=MemoryConsensus)

    @property
    def session(self) -> Any:
        return connect(self.connection)

    @property
    def writer(self) -> JournalWriter:
        keys = {"name": WRITER, "kind": "journal", "keyspace": self.keyspace}
        keys |= {"segment_size": self.segment_size}
        declared = JournalDeclaration.model_validate(keys, context={})
        return JournalWriter(PIPELINE, declared, self.connection, self.zone)

    @property
    def log(self) -> PublishedLog:
        return PublishedLog.open(self.control, str(self.root))

    @property
    def state(self) -> WriterState:
        found = self.positions.load(WRITER)
        assert found is not None
        return found

    def publish(self, t: int, records: Iterable[Record]) -> Binding:
        """Bind these records at ``t`` or right behind the last write time, capture and publish them."""
        found: dict[tuple[str, int], list[Record]] = {}
        for record in records:
            found.setdefault((record.topic, record.partition), []).append(record)
        head = self.control.bindings_head()
        previous = Bindings(self.control).at(head.newest) if head.newest is not None else None
        slices = [Slice(*place, of[0].offset, of[-1].offset + 1) for place, of in sorted(found.items())]
        after = previous.t + previous.width + 1 if previous else t
        base = previous.end + 1 if previous else 0
        binding = Binding(max(t, after), base, tuple(slices), f"run-{base}")
        add_binding(self.control, binding)
        folder = LogFolder(PIPELINE, str(self.root))
        files = [
            write_file(folder, binding, s, [_batch(binding, found[s.topic, s.partition])]) for s in slices
        ]
        captured = captured_of(binding, *files)
        folder.write_captured(captured)
        folder.write_audit(AuditRecord(binding.t, captured.digest, ()))
        publish(self.control, folder, binding, self.segment_bytes, binding.t)
        return binding

    def deliver(self, write_parts: WriteParts = write_parts_here) -> Delivered:
        """Bring the writer to the end of the log."""
        return deliver_to(
            self.writer, self.log, self.positions, "test", write_parts, limit=10**9, reload=self._reload
        )

    def deliver_again(self) -> Delivered:
        """Deliver everything that is finished once more."""
        times = {"from_t": 0, "to_t": 2**62}
        return deliver_again(
            self.writer, self.log, self.positions, "test", write_parts_here, reload=self._reload, **times
        )

    def rewind(self, position: int) -> None:
        """Go back."""
        plan = OperatorActions(self.positions, self.log).rewind(WRITER, position)
        plan.execute(AuditEntry(plan.action, "ann", "to see what happens", 0))

    @property
    def _reload(self) -> Callable[[], WriterState | None]:
        return lambda: self.positions.load(WRITER)


def _batch(binding: Binding, records: Iterable[Record]) -> pa.RecordBatch:
    rows = []
    for record in records:
        id_ = binding.id_of(record.topic, record.partition, record.offset)
        headers = [{"name": name, "value": value} for name, value in record.headers]
        rows.append(
            {
                **record._asdict(),
                "id": id_,
                "t": binding.t,
                "write_time": binding.write_time(id_),
                "timestamp_type": 0,
                "headers": headers or None,
                "namespace": record.topic,
            }
        )
    return pa.RecordBatch.from_pylist(rows, schema=LOG_SCHEMA)


def twice(write_parts: WriteParts) -> WriteParts:
    """As if a first delivery had died when all was written and nothing promised."""

    def write_parts_twice(*arguments: Any) -> Any:
        write_parts(*arguments)
        return write_parts(*arguments)

    return write_parts_twice


@contextmanager
def given_keyspace(connection: CassandraConnection, name: str) -> Iterator[str]:
    """The name of a keyspace that does not exist yet, and is gone afterwards."""
    keyspace = f"{name}_{uuid4().hex[:8]}"
    try:
        yield keyspace
    finally:
        connect(connection).execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)
