"""Synthetic logs of any size for bench/bookkeeping.py: lists and bindings are real, old data files missing."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidemark.cassandra.driver import Session
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ABSENT, Change, Consensus, ObjectKey, ObjectKind, Snapshot
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder, file_path, write_parquet
from tidemark.log.files.segment_lists import LISTS
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice, reached_offsets
from tidemark.log.model.captured import Captured, CapturedFile
from tidemark.log.model.manifest import (
    MAX_FILES_PER_SEGMENT,
    ClosedPart,
    LogFile,
    Manifest,
    Segment,
    digest_of,
)
from tidemark.log.model.segment_list import with_lists
from tidemark.log.model.statistics import FileStatistics
from tidemark.log.state.control import HEAD, BindingsHead, LogControl, LogHead

WIDTH = 10
"""The number of messages in a file."""
STEP = 1_000_000
"""The time between two bindings in µs."""
AT_ONCE = 500


@dataclass
class GrownLog:
    """A log with many published bindings of as many partitions."""

    name: str
    partitions: int
    bindings: int
    consensus: Consensus
    root: str
    session: Session | None = None
    _next: Binding = field(init=False)

    def __post_init__(self) -> None:
        self.control, self.folder = LogControl(self.consensus, self.name), LogFolder(self.name, self.root)
        self._next = self.binding(self.bindings)

    @property
    def files(self) -> int:
        return self.partitions * self.bindings

    def binding(self, number: int) -> Binding:
        slices = tuple(
            Slice("orders", partition, WIDTH * number, WIDTH * (number + 1))
            for partition in range(self.partitions)
        )
        return Binding(STEP * (number + 1), WIDTH * self.partitions * number, slices, f"run-{number}")

    def grow(self) -> None:
        """Write the lists, the manifest and the rows of the control plane."""
        newest = self.binding(self.bindings - 1)
        segments = list(self._segments())
        closed: list[ClosedPart] = [*segments[:-1]]
        log = Manifest(self.name, tuple(closed), segments[-1], newest.t, newest.end)
        Path(self.root, LISTS).mkdir(parents=True)
        count = iter(range(10**9))

        def put(data: bytes) -> tuple[str, str]:
            path = f"{LISTS}/{newest.t:020d}-{'0' * 12}-{next(count)}.json"
            Path(self.root, path).write_bytes(data)
            return path, digest_of(data)

        log = with_lists(log, put)
        path, digest = self.folder.write_manifest(log)
        self.control.replace_log(ABSENT, LogHead.naming(log, path, digest, self.root))
        self._fill((f"t/{b.t:020d}", b.to_json()) for b in map(self.binding, range(self.bindings)))
        reached = reached_offsets({}, newest.slices)
        head = BindingsHead(ABSENT, newest.t + 1, newest.t, reached, {})
        self.consensus.commit(self._key, self._version(), Change({HEAD: head.to_json()}))

    def _segments(self) -> Iterator[Segment]:
        files: list[LogFile] = []
        for number in range(self.bindings):
            if len(files) >= MAX_FILES_PER_SEGMENT:
                yield Segment(tuple(files))
                files = []
            files += self._named(self.binding(number))
        yield Segment(tuple(files))

    def _named(self, binding: Binding) -> Iterator[LogFile]:
        first = binding.base
        for s in binding.slices:
            digest = f"{first:064x}"
            yield LogFile(
                f"files/{first:020d}-{first + WIDTH - 1:020d}.parquet",
                *(binding.t, s.topic, s.partition, first, first + WIDTH - 1, WIDTH, 3_000, digest),
            )
            first += WIDTH

    @property
    def _key(self) -> ObjectKey:
        return ObjectKey(ObjectKind.BINDINGS, self.name)

    def _version(self) -> int:
        return self.consensus.read(self._key, [HEAD]).version

    def _fill(self, rows: Iterator[tuple[str, str]]) -> None:
        """Write rows of the bindings object without a transaction each."""
        if isinstance(self.consensus, MemoryConsensus):
            self.consensus._objects[self._key] = Snapshot(1, dict(rows))
            return
        assert self.session is not None
        insert = self.session.prepare(
            "INSERT INTO tidemark.object (kind, name, row, body) VALUES (?, ?, ?, ?)"
        )
        waiting = []
        for row, body in rows:
            waiting.append(self.session.execute_async(insert, (str(self._key.kind), self.name, row, body)))
            if len(waiting) >= AT_ONCE:
                for one in waiting:
                    one.result()
                waiting = []
        for one in waiting:
            one.result()

    def capture_next(self) -> Binding:
        """Bind and capture one more binding; its data files exist."""
        binding = self._next
        self.control.add_binding(self.control.bindings_head(), binding)
        captured = Captured(binding.t, tuple(self._written(binding)), rows_read=binding.width)
        self.folder.write_captured(captured)
        self.folder.write_audit(AuditRecord(binding.t, captured.digest, ()))
        self._next = self.binding(binding.t // STEP)
        return binding

    def _written(self, binding: Binding) -> Iterator[CapturedFile]:
        Path(self.root, "files").mkdir(exist_ok=True)
        for s in binding.slices:
            first = binding.id_of(s.topic, s.partition, s.lower)
            sink = io.BytesIO()
            write_parquet(sink, [_messages(binding, s, first)])
            data, path = sink.getvalue(), file_path(binding, s)
            Path(self.root, path).write_bytes(data)
            digest, last = sha256(data).hexdigest(), first + WIDTH - 1
            file = LogFile(path, binding.t, s.topic, s.partition, first, last, WIDTH, len(data), digest)
            yield CapturedFile(
                file,
                FileStatistics(
                    *(path, s.topic, s.partition, s.lower, s.upper, first, last, first, last),
                    *(s.lower, s.upper - 1, WIDTH, 0, 0, 0, 0, 0, 0, 0, len(data), digest),
                ),
            )


def _messages(binding: Binding, s: Slice, first: int) -> pa.RecordBatch:
    ids = np.arange(first, first + WIDTH)
    table = pa.table(
        {
            "id": ids,
            "t": np.full(WIDTH, binding.t),
            "write_time": binding.t + ids - binding.base,
            "topic": [s.topic] * WIDTH,
            "partition": np.full(WIDTH, s.partition, dtype=np.int32),
            "offset": np.arange(s.lower, s.upper),
            "timestamp": np.full(WIDTH, 1_794_000_000_000),
            "timestamp_type": np.zeros(WIDTH, dtype=np.int32),
            "key": pa.array([b"k"] * WIDTH, pa.binary()),
            "value": pa.array([b"v" * 100] * WIDTH, pa.binary()),
            "headers": pa.nulls(WIDTH, LOG_SCHEMA.field("headers").type),
            "namespace": [s.topic] * WIDTH,
        }
    ).cast(LOG_SCHEMA)
    return table.combine_chunks().to_batches()[0]
