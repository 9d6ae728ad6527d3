"""Bindings, messages and published logs in one line each: what the tests of the log start from."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Snapshot
from tidemark.log.files.merge import lanes
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder, write_parquet
from tidemark.log.files.row_groups import between
from tidemark.log.model.audit_result import CRITICAL, AuditRecord, Judgement
from tidemark.log.model.binding import Available, Binding, Offsets, Slice, reached_offsets
from tidemark.log.model.captured import Captured, CapturedFile
from tidemark.log.model.manifest import LogFile, Manifest, Segment
from tidemark.log.publish import publish, read_log
from tidemark.log.state.control import BindingsHead, LogControl, LogHead

SEGMENT_BYTES = 1_000_000_000
PUBLISHED_AT = 9_000
"""When ``publish`` looks at the clock, in µs: the time a gate would be closed at."""
SENT_AT = 1_700_000_000_000
"""The records' own timestamp, in ms."""

Values = Mapping[tuple[str, int], Mapping[int, bytes | None]]
"""What Kafka holds: values by offset, by (topic, partition)."""


@dataclass(eq=False)
class LogInMemory:
    """The folder of a log, and the rows of its object that compaction knows, without any file."""

    batches: dict[str, pa.RecordBatch] = field(default_factory=dict)
    """The messages of every file, by its path."""
    rows_a_batch: int = 8_192
    """How many messages a reader of a file gets at once."""
    plane: LogControl = field(default_factory=lambda: LogControl(MemoryConsensus(), "orders"))
    bindings: list[Binding] = field(default_factory=list)
    """The bindings that were added here instead of to ``plane``, oldest first."""

    root: str = "nowhere"

    def binding_rows(
        self, after: int, before: int | None = None, limit: int = 200, *, first: bool = False
    ) -> list[Binding]:
        found = [one for one in self.bindings if after < one.t and (before is None or one.t < before)]
        return found[:limit] if first else found[-limit:]

    @property
    def pipeline(self) -> str:
        return self.plane.pipeline

    def amend_log(self, rows: Sequence[str], decide: Callable[[Snapshot], Any]) -> Any:
        return self.plane.amend_log(rows, decide)

    def log_rows(self, prefix: str) -> Mapping[str, str]:
        return self.plane.log_rows(prefix)

    def bindings_head(self) -> BindingsHead:
        return replace(self.plane.bindings_head(), newest=self.bindings[-1].t if self.bindings else None)

    def scan_log(self, prefix: str, limit: int) -> Snapshot:
        return self.plane.scan_log(prefix, limit)

    def read_file(
        self,
        file: LogFile,
        columns: Sequence[str] | None = None,
        first_id: int = 0,
        last_id: int = 2**62,
    ) -> Iterator[pa.RecordBatch]:
        batch, rows = between(self.batches[file.path], first_id, last_id), self.rows_a_batch
        batch = batch if columns is None else batch.select(list(columns))
        yield from (batch.slice(first, rows) for first in range(0, batch.num_rows, rows))

    def count_between(self, file: LogFile, first_id: int, last_id: int) -> int:
        return between(self.batches[file.path], first_id, last_id).num_rows

    def last_id(self, file: LogFile, first_id: int, last_id: int) -> int | None:
        ids = between(self.batches[file.path], first_id, last_id)["id"].to_pylist()
        return max(ids, default=None)


def given_topic_id(topic: str) -> str:
    """The id of a topic that was not made again."""
    return f"first {topic}"


def given_binding(
    t: int,
    base: int,
    *slices: tuple[str, int, int, int],
    run_id: str = "run-1",
    topic_ids: Mapping[str, str] | None = None,
) -> Binding:
    """A binding with slices written as (topic, partition, lower, upper)."""
    ids = topic_ids if topic_ids is not None else {topic: given_topic_id(topic) for topic, *_ in slices}
    return Binding(t, base, tuple(Slice(*s) for s in slices), run_id, tuple(sorted(ids.items())))


FIRST = given_binding(1_000, 0, ("orders", 0, 0, 3), ("orders", 1, 0, 2))
SECOND = given_binding(2_000, 5, ("orders", 0, 3, 5), run_id="run-2")
FIRST_VALUES = {("orders", 0): {0: b"a", 1: b"b", 2: b"c"}, ("orders", 1): {0: b"x", 1: b"y"}}
SECOND_VALUES = {("orders", 0): {3: b"d", 4: b"e"}}
"""Two bindings, one after the other, and what Kafka holds for them."""


def given_available(**latest: int) -> Available:
    """Partition 0 of each topic, from its beginning up to ``latest``."""
    return given_kafka({(topic, 0): Offsets(0, upper) for topic, upper in latest.items()})


def given_kafka(offsets: Mapping[tuple[str, int], Offsets], **made_again: str) -> Available:
    """What Kafka holds; a topic that was made again is given with its new id."""
    return Available(offsets, {topic: made_again.get(topic, given_topic_id(topic)) for topic, _ in offsets})


def given_messages(
    binding: Binding,
    topic: str,
    partition: int,
    values: Mapping[int, bytes | None],
    *,
    key: bytes | None = b"k",
    headers: list[tuple[str, bytes | None]] | None = None,
) -> pa.RecordBatch:
    """The messages of one partition as the log keeps them."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": binding.id_of(topic, partition, offset),
                "t": binding.t,
                "write_time": binding.write_time(binding.id_of(topic, partition, offset)),
                "topic": topic,
                "partition": partition,
                "offset": offset,
                "timestamp": SENT_AT,
                "timestamp_type": 0,
                "key": key,
                "value": value,
                "headers": None if headers is None else [{"name": n, "value": v} for n, v in headers],
                "namespace": topic,
            }
            for offset, value in values.items()
        ],
        schema=LOG_SCHEMA,
    )


def given_many_messages(binding: Binding) -> pa.Table:
    """A message for every offset of a binding's only slice, with nulls among keys, values and headers."""
    (s,) = binding.slices
    offsets = range(s.lower, s.upper)
    columns = {
        "id": pa.array(range(binding.base, binding.base + s.width), pa.int64()),
        "t": pa.repeat(pa.scalar(binding.t, pa.int64()), s.width),
        "write_time": pa.array(range(binding.t, binding.t + s.width), pa.int64()),
        "topic": pa.repeat(s.topic, s.width),
        "partition": pa.repeat(pa.scalar(s.partition, pa.int32()), s.width),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array(offsets, pa.int64()),
        "timestamp_type": pa.repeat(pa.scalar(0, pa.int32()), s.width),
        "key": pa.array([b"k%d" % (i % 7) if i % 5 else None for i in offsets], pa.binary()),
        "value": pa.array([b"v%d" % i if i % 3 else None for i in offsets], pa.binary()),
        "headers": pa.array(
            [[{"name": "h", "value": b"x"}] if i % 11 == 0 else None for i in offsets],
            LOG_SCHEMA.field("headers").type,
        ),
        "namespace": pa.repeat(s.topic, s.width),
    }
    return pa.table(columns, schema=LOG_SCHEMA)


def write_file(
    folder: LogFolder,
    binding: Binding,
    slice_: Slice,
    batches: Iterable[pa.RecordBatch],
    is_declared: Callable[[str], bool] = lambda namespace: True,
) -> CapturedFile | None:
    """Write the messages of a slice into an area and let the log take the file over, as a capture does."""
    area = folder.new_area(binding.t)
    write_parquet(Path(folder.area_at(area), "part-0.parquet"), batches)
    written = folder.adopt_file(binding, [slice_], f"{area}/part-0.parquet", is_declared)
    folder.remove_area(area)
    return written


def captured_of(binding: Binding, *files: CapturedFile | None) -> Captured:
    """The record of a capture that lost nothing on its way."""
    found = tuple(file for file in files if file is not None)
    return Captured(binding.t, found, rows_read=sum(one.file.count for one in found))


@dataclass(frozen=True)
class RowsEngine:
    """A capture's engine without Spark: writes the batches that a function gives for each slice."""

    batches: Callable[[Binding, Slice], Sequence[pa.RecordBatch]]
    judgements: Sequence[Judgement] = ()

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        count = 0
        Path(area).mkdir()
        for number, slice_ in enumerate(slices):
            if batches := self.batches(binding, slice_):
                write_parquet(Path(area, f"part-{number}.parquet"), batches)
                count += sum(batch.num_rows for batch in batches)
        return count

    def audit(self, captured: Captured) -> Sequence[Judgement]:
        return self.judgements


def capture(
    folder: LogFolder, binding: Binding, values: Values, *, audited: bool = True, bad: Judgement | None = None
) -> Captured:
    """Do what the capture application does, without Spark; its audit finds nothing, or something bad."""
    files = [
        write_file(
            folder, binding, s, [given_messages(binding, s.topic, s.partition, values[s.topic, s.partition])]
        )
        for s in binding.slices
        if values.get((s.topic, s.partition))
    ]
    captured = captured_of(binding, *files)
    folder.write_captured(captured)
    if audited:
        folder.write_audit(AuditRecord(binding.t, captured.digest, (bad,) if bad else ()))
    return captured


def given_finding(
    title: str, detail: str, ids: tuple[int, int] | None, severity: str = CRITICAL
) -> Judgement:
    """An expectation that was not met."""
    return Judgement(title, "expect_column_values_to_be_between", severity, False, detail, ids)


def add_binding(control: LogControl, binding: Binding) -> None:
    """Make a binding durable, as ``bind`` does."""
    control.add_binding(control.bindings_head(), binding)


def publish_all(control: LogControl, folder: LogFolder, captures: Mapping[Binding, Values]) -> None:
    """Bind, capture and publish one binding after the other."""
    for binding, values in captures.items():
        add_binding(control, binding)
        capture(folder, binding, values)
        publish(control, folder, binding, SEGMENT_BYTES, PUBLISHED_AT)


def mark_published(control: LogControl, binding: Binding) -> None:
    """What ``publish`` changes in the control plane."""
    control.replace_log(control.log_head().version, LogHead(t=binding.t, end=binding.end))


def given_narrow_bindings(control: LogControl, count: int) -> None:
    """Bindings at t = 10, 20, …, each owning one id: 0, 1, …"""
    head = BindingsHead()
    for i in range(count):
        binding = given_binding(10 * (i + 1), i, ("orders", 0, i, i + 1), run_id=f"run-{i}")
        control.add_binding(head, binding)
        head = BindingsHead(i + 1, binding.t + 1, binding.t, reached_offsets(head.reached, binding.slices))


PLAN = "0123456789ab"
"""The digest of a plan, as names of compacted files carry it."""


def compact(
    control: LogControl,
    folder: LogFolder,
    below: int,
    keep: Callable[[int], bool] = lambda id_: True,
    policy: str = "journal",
) -> Manifest:
    """Do what a compaction does, without deciding anything: files that end below an id are merged by
    partition, and of their messages those are kept whose ids are."""
    before = control.log_head()
    manifest = read_log(control, folder)
    inactive = [file for file in manifest.files if file.last_id < below]
    active = tuple(file for file in manifest.files if file.last_id >= below)
    merged = [one for lane in lanes(inactive) if (one := _merged_file(folder, lane, keep))]
    closed = Segment(tuple(sorted(merged, key=lambda file: file.first_id)))
    after = manifest.with_segments([closed], Segment(active)).compacted(below, policy)
    control.replace_log(before.version, LogHead.naming(after, *folder.write_manifest(after)))
    return after


def _merged_file(folder: LogFolder, files: Sequence[LogFile], keep: Callable[[int], bool]) -> LogFile | None:
    messages = pa.Table.from_batches([batch for file in files for batch in folder.read_file(file)])
    kept = messages.filter(pa.array([keep(id_) for id_ in messages["id"].to_pylist()], pa.bool_()))
    if kept.num_rows == 0:
        return None
    ids, times = kept["id"].to_pylist(), kept["t"].to_pylist()
    path = f"files/{ids[0]:020d}-{ids[-1]:020d}-{PLAN}.parquet"
    at = Path(folder.root, path)
    write_parquet(at, kept.to_batches())
    digest = sha256(at.read_bytes()).hexdigest()
    place = (files[0].topic, files[0].partition)
    return LogFile(path, times[-1], *place, ids[0], ids[-1], len(ids), at.stat().st_size, digest, times[0])
