"""The log's files: Parquet, one per binding and Kafka partition, sorted by id.

A capture writes them into its own staging area. Here they are counted, checked against the binding and
renamed to their final names. The bytes of a file depend on its messages alone, so every capture of the same
binding gives the same digest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.faults import FaultPoint, reach
from tidemark.log.errors import ManifestDamaged, RangeWrong, RecordsMissing
from tidemark.log.files.digest_cache import VERIFIED
from tidemark.log.files.folder import Folder
from tidemark.log.files.row_groups import RowGroup, groups_of, read_groups
from tidemark.log.files.segment_lists import SegmentLists
from tidemark.log.files.statistics import FileTally
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured, CapturedFile
from tidemark.log.model.manifest import ClosedPart, LogFile, Manifest, digest_of

ROWS_PER_GROUP = 65_536
"""Fixed, because the bytes of a file must not depend on the batches it was written from."""
SUFFIX = ".parquet"
MANIFESTS = "manifests"
CAPTURED = "captured"
AUDITS = "audits"

_COLUMNS = {
    "id": pa.int64(),
    "t": pa.int64(),
    "write_time": pa.int64(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.int64(),
    "timestamp_type": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
    "namespace": pa.string(),
}
_NULLABLE = {"key", "value", "headers"}
LOG_SCHEMA = pa.schema(
    [pa.field(name, type_, nullable=name in _NULLABLE) for name, type_ in _COLUMNS.items()]
)

_ENCODING = {
    "compression": "zstd",
    "write_statistics": ["id", "offset", "key", "value"],
    # Building dictionaries for columns without repeated values takes half of the time of writing a file.
    "use_dictionary": ["t", "topic", "partition", "timestamp_type", "key", "namespace"],
    "column_encoding": dict.fromkeys(("id", "write_time", "offset", "timestamp"), "DELTA_BINARY_PACKED"),
}


class LogFolder:
    """The folder of one pipeline's log: data files, records of captures and audits, manifests and lists."""

    def __init__(self, pipeline: str, root: str) -> None:
        self.pipeline = pipeline
        self._folder = Folder(pipeline, root)
        self._lists = SegmentLists(self._folder)
        self.root = root

    def new_area(self, t: int) -> str:
        """A new staging area for one attempt at the capture of ``t``."""
        return self._folder.new_area(_moment(t))

    def files_in(self, area: str) -> list[str]:
        """The files that an attempt has written into its staging area."""
        return self._folder.list_files(area, SUFFIX)

    def remove_area(self, area: str) -> None:
        """Remove the staging area of an attempt."""
        self._folder.remove_area(area)

    def adopt_file(
        self,
        binding: Binding,
        slices: Sequence[Slice],
        staged: str,
        is_declared: Callable[[str], bool] = lambda namespace: True,
    ) -> CapturedFile | None:
        """Move a staged file with the messages of one slice to its final name in the log's folder.

        The file is read back, so that the statistics are those of the stored bytes. None where it has no
        message.
        """
        with self._folder.open(staged) as source, pq.ParquetFile(source) as parquet:
            batches = parquet.iter_batches(batch_size=8192, columns=FileTally.COLUMNS)
            first = next(batches, None)
            if first is None:
                return None
            slice_ = self._slice_of(first, slices)
            tally = FileTally(binding, slice_, is_declared)
            for batch in chain([first], batches):
                tally.count(batch)
            tally.count_nulls(parquet.metadata)
        self._refuse_strangers(binding, slice_, tally)
        path, size, digest = (
            file_path(binding, slice_),
            self._folder.size(staged),
            self._folder.digest(staged),
        )
        reach(FaultPoint.CAPTURE_FILE_STAGED)
        self._folder.adopt(staged, path, digest)
        reach(FaultPoint.CAPTURE_FILE_NAMED)
        return tally.conclude(path, size, digest)

    def _slice_of(self, messages: pa.RecordBatch, slices: Sequence[Slice]) -> Slice:
        place = messages.column("topic")[0].as_py(), messages.column("partition")[0].as_py()
        for s in slices:
            if (s.topic, s.partition) == place:
                return s
        raise RecordsMissing(self._folder.owner, *place, 0, 0, "capture found records of it")

    def _refuse_strangers(self, binding: Binding, s: Slice, tally: FileTally) -> None:
        """Raise ``RecordsMissing`` where the file has ids outside its slice."""
        lowest = binding.id_of(s.topic, s.partition, s.lower)
        first, last, count = tally.first_id, tally.last_id, tally.rows
        if not lowest <= first <= last < lowest + s.width or count > s.width:
            found = f"capture found ids {first} to {last} ({count} records) instead of {lowest} and the next"
            raise RecordsMissing(self._folder.owner, s.topic, s.partition, s.lower, s.upper, found)

    def require_writable(self, t: int) -> None:
        """Raise ``FolderUnusable`` for a folder that cannot be written, before a capture does its work."""
        with self._folder.stage(_moment(t)):
            return

    def write_captured(self, captured: Captured) -> None:
        """Write the record of a capture."""
        self._folder.write_once(_record_path(CAPTURED, captured.t), captured.to_bytes(), _moment(captured.t))

    def read_captured(self, t: int) -> Captured | None:
        """The record of the capture of ``t``; None where it has not finished."""
        if not self._folder.exists(_record_path(CAPTURED, t)):
            return None
        return Captured.from_bytes(self._folder.read(_record_path(CAPTURED, t)))

    def write_audit(self, record: AuditRecord) -> None:
        """Write the record of an audit; it replaces an earlier audit of the same binding."""
        self._folder.replace(_record_path(AUDITS, record.t), record.to_bytes(), _moment(record.t))

    def read_audit(self, t: int) -> AuditRecord | None:
        """The newest audit of ``t``; None where there was none."""
        if not self._folder.exists(_record_path(AUDITS, t)):
            return None
        return AuditRecord.from_bytes(self._folder.read(_record_path(AUDITS, t)))

    def with_lists(
        self, manifest: Manifest, plan: str | None = None, written: dict[str, str] | None = None
    ) -> Manifest:
        """Write the lists that a manifest lacks; returns the manifest that names them.

        ``plan`` is the digest of a compaction's plan: the names of its lists have it, for the sweep. For
        ``written`` see ``SegmentLists.write``.
        """
        return self._lists.write(manifest, plan, written)

    def write_manifest(self, manifest: Manifest, plan: str | None = None) -> tuple[str, str]:
        """Write a new manifest, which is not the log yet, and lists it lacks; returns its path and digest.

        For ``plan`` see ``with_lists``.
        """
        data = self.with_lists(manifest, plan).to_bytes()
        digest = digest_of(data)
        path = f"manifests/{_moment(manifest.t)}-{digest[:12]}.json"
        # Not in the area of a binding: the publication of that binding would remove it.
        self._folder.write_once(path, data, MANIFESTS)
        return path, digest

    def write_lists(self, parts: Iterable[ClosedPart], t: int, plan: str) -> tuple[ClosedPart, ...]:
        """Write the lists of segments that a plan makes; returns their lines, which no manifest has yet."""
        return self._lists.write_parts(parts, t, plan)

    def read_manifest(self, path: str, digest: str) -> Manifest:
        """The manifest that a control row names; raises ``ManifestDamaged`` where its digest differs."""
        data = self._folder.read(path)
        if digest_of(data) != digest:
            raise ManifestDamaged(self._folder.owner, self._folder.at(path), digest, digest_of(data))
        return Manifest.from_bytes(data, self._lists)

    def read_older_manifest(self, path: str) -> Manifest | None:
        """An earlier manifest, verified by the digest in its name; None where it does not exist any more."""
        if not self._folder.exists(path):
            return None
        data = self._folder.read(path)
        expected = path.rpartition("-")[2].removesuffix(".json")
        if not digest_of(data).startswith(expected):
            raise ManifestDamaged(self._folder.owner, self._folder.at(path), expected, digest_of(data))
        return Manifest.from_bytes(data, self._lists)

    def sweep(self, t: int) -> None:
        """Remove the staging areas of crashed attempts at ``t`` and earlier bindings, which are published."""
        self._folder.sweep(lambda area: area.isdecimal() and int(area) <= t)

    def verify(self, file: LogFile) -> None:
        """Read a file, and raise ``FileDamaged`` where its digest is not the recorded one."""
        self._folder.verify(file.path, file.digest)

    def ensure_verified(self, file: LogFile) -> None:
        """As ``verify``, but a file that this process has verified and that has not changed is not read
        again.
        """
        VERIFIED.ensure(
            self._folder.address(file.path),
            file.digest,
            self._folder.condition(file.path),
            lambda: self.verify(file),
        )

    def verify_range(self, file: LogFile) -> None:
        """Raise ``RangeWrong`` where a file's footer contradicts the ids or the count in its manifest."""
        groups = self._groups(file)
        firsts = [group.first_id for group in groups if group.first_id is not None]
        lasts = [group.last_id for group in groups if group.last_id is not None]
        found = (min(firsts, default=-1), max(lasts, default=-1), sum(group.rows for group in groups))
        expected = (file.first_id, file.last_id, file.count)
        if found != expected:
            raise RangeWrong(self._folder.owner, self._folder.at(file.path), expected, found)

    def count_between(self, file: LogFile, first_id: int, last_id: int) -> int:
        """The number of messages with ids of a range; for most row groups the footer is enough."""
        if first_id <= file.first_id and file.last_id <= last_id:
            return file.count
        groups = [group for group in self._groups(file) if group.may_have(first_id, last_id)]
        whole = sum(group.rows for group in groups if group.is_within(first_id, last_id))
        cut = [group.number for group in groups if not group.is_within(first_id, last_id)]
        read = self._read_groups(file, cut, ["id"], (first_id, last_id))
        return whole + sum(int(batch.num_rows) for batch in read)

    def last_id(self, file: LogFile, first_id: int, last_id: int) -> int | None:
        """The last id within a range that a message of the file has; None where none has one."""
        if first_id <= file.last_id <= last_id:
            return file.last_id
        for group in reversed(self._groups(file)):
            if group.may_have(first_id, last_id):
                found = list(self._read_groups(file, [group.number], ["id"], (first_id, last_id)))
                if found:
                    return int(found[-1].column("id")[-1].as_py())
        return None

    def _groups(self, file: LogFile) -> list[RowGroup]:
        with self._folder.open(file.path) as source, pq.ParquetFile(source) as parquet:
            return list(groups_of(parquet.metadata))

    def at(self, file: LogFile) -> str:
        """The absolute path of a file, for components that read it themselves."""
        return self._folder.address(file.path)

    def area_at(self, area: str) -> str:
        """The absolute path of a staging area, for components that write into it."""
        return self._folder.address(area)

    def read_file(
        self,
        file: LogFile,
        columns: Sequence[str] | None = None,
        first_id: int | None = None,
        last_id: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The messages of a file in id order, in batches: all, or those from ``first_id`` to ``last_id``.

        Raises ``FileDamaged`` before the first message.
        """
        self.ensure_verified(file)
        first = file.first_id if first_id is None else max(first_id, file.first_id)
        last = file.last_id if last_id is None else min(last_id, file.last_id)
        if (first, last) == (file.first_id, file.last_id):
            yield from self._read_groups(file, None, columns, None)
        elif first <= last:
            numbers = [group.number for group in self._groups(file) if group.may_have(first, last)]
            yield from self._read_groups(file, numbers, columns, (first, last))

    def _read_groups(
        self,
        file: LogFile,
        numbers: Sequence[int] | None,
        columns: Sequence[str] | None,
        ids: tuple[int, int] | None,
    ) -> Iterator[pa.RecordBatch]:
        if numbers is None or numbers:
            with self._folder.open(file.path) as source, pq.ParquetFile(source) as parquet:
                yield from read_groups(parquet, LOG_SCHEMA, numbers, columns, ids)

    def read_chosen(self, file: LogFile, choose: Callable[[pa.ChunkedArray], pa.Array]) -> Iterator[pa.Table]:
        """The messages whose keys ``choose`` selects, in id order; row groups without one are read by key
        only.
        """
        self.ensure_verified(file)
        with self._folder.open(file.path) as source, pq.ParquetFile(source) as parquet:
            for number in range(parquet.num_row_groups):
                chosen = choose(parquet.read_row_group(number, ["key"])["key"])
                if chosen.true_count:
                    group = parquet.read_row_group(number).filter(chosen)
                    yield group.select(LOG_SCHEMA.names).cast(LOG_SCHEMA)


def open_writer(sink: object) -> pq.ParquetWriter:
    """Writes a file of the log, one row group a call of ``write_table``."""
    return pq.ParquetWriter(sink, LOG_SCHEMA, **_ENCODING)


def write_parquet(sink: object, batches: Iterable[pa.RecordBatch]) -> int:
    """Write messages, which must be in id order; returns their number."""
    count = 0
    with open_writer(sink) as writer:
        for group in _regrouped(batches):
            count += group.num_rows
            writer.write_table(group, row_group_size=ROWS_PER_GROUP)
            del group  # so that only one is in memory while the next one is gathered
    return count


def _regrouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in groups of a fixed size."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= ROWS_PER_GROUP:
            table = pa.Table.from_batches(waiting, LOG_SCHEMA)
            rest = table.slice(ROWS_PER_GROUP)
            waiting, rows = rest.to_batches(), rest.num_rows
            group = table.slice(0, ROWS_PER_GROUP).combine_chunks()
            del table  # frees its memory while the group is written
            yield group
            del group
    if rows:
        yield pa.Table.from_batches(waiting, LOG_SCHEMA).combine_chunks()


def file_path(binding: Binding, slice_: Slice) -> str:
    """The path of a slice's file. It has the slice's ids, so that a part of a slice has another name."""
    first = binding.id_of(slice_.topic, slice_.partition, slice_.lower)
    return f"files/{first:020d}-{first + slice_.width - 1:020d}.parquet"


def _moment(t: int) -> str:
    return f"{t:020d}"


def _record_path(area: str, t: int) -> str:
    return f"{area}/{_moment(t)}.json"
