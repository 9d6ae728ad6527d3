"""The files of a synchronisation, in the log's folder: the dump, what differs from it, what became of that.

Their place follows from the key of the run and the time of the comparison, so that every attempt finds what
earlier ones have written. A file that no summary names does not count. Nothing here decides anything.
"""

import posixpath
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.clock import SECOND
from tidemark.faults import FaultPoint, reach
from tidemark.log.files.folder import Folder
from tidemark.operations.operation import EventName, ObjectOperation, object_key
from tidemark.oplog.sync.dump.reader import DumpReader, run_key
from tidemark.oplog.sync.errors import DiffMissing, DumpEmpty, StartRefused
from tidemark.oplog.sync.file_columns import (
    DIFF,
    DUMP,
    OPERATION,
    SETTLED,
    operations_of,
    settled_batch,
    settled_of,
)
from tidemark.oplog.sync.sending import Place, Settled

AREA = "sync"
REPORTS = posixpath.join(AREA, "reports")
ROWS_AT_ONCE = 25_000
BATCHES_A_FILE = 5
"""Few enough for several tasks to have a file each, and to keep them in memory."""
LIFE = 30 * 24 * 3600 * SECOND
"""How long files of a run stay that was not finished, in µs: its plan may wait for an operator's approval."""

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class DumpSummary:
    """A dump that was read and found good.

    Attributes:
        key: The key of the run.
        dump: Where it was read.
        start: When it began, in ms since 1970.
        lines: The number of its lines.
        has_duplicates: Whether an object may have several lines: the newest counts, of equal ones the last.
        files: The paths of its objects' files.
    """

    key: str
    dump: str
    start: int
    lines: int
    has_duplicates: bool
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class DiffSummary:
    """A comparison.

    Attributes:
        key: The key of the run.
        t: The time of the collection's rows, in µs; 0 where nothing was ever bound.
        topic: The topic of the operations.
        topic_id: Kafka's id of it.
        starts: The first offset of each partition that the comparison does not know.
        outcomes: The number of objects by their outcome.
        live: The number of objects that are there.
        files: The paths of the corrections' files.
        first: Some of the corrections, as people read them.
    """

    key: str
    t: int
    topic: str
    topic_id: str
    starts: dict[int, int]
    outcomes: dict[str, int]
    live: int
    files: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


@dataclass(frozen=True)
class SentSummary:
    """What became of the corrections.

    Attributes:
        sent: How many were sent and count.
        overtaken: How many were not sent, or are void, because their object had changed since.
        resent: How many had to be sent again.
        ends: The first offset of each partition that the sender has not read: everything sent is before it.
        file: The path of the file with each of them.
    """

    sent: int
    overtaken: int
    resent: int
    ends: dict[int, int]
    file: str


class SettledFile:
    """A file that is being written: what became of corrections. ``path`` is known at its end."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self.sent = self.overtaken = 0
        self.path = ""

    def add(self, settled: Sequence[Settled]) -> None:
        """Add some of them."""
        if settled:
            self._writer.write_batch(settled_batch(settled))
            sent = sum(one.is_sent for one in settled)
            self.sent, self.overtaken = self.sent + sent, self.overtaken + len(settled) - sent


@dataclass(frozen=True)
class SyncFiles:
    """The files of a pipeline's synchronisations; ``root`` is the log's folder."""

    pipeline: str
    root: str

    @cached_property
    def folder(self) -> Folder:
        """The log's folder."""
        return Folder(self.pipeline, self.root)

    # The dump

    def keep_dump(
        self, reader: DumpReader, dump: str, start: int | None, *, may_be_empty: bool = False
    ) -> DumpSummary:
        """Read a dump and keep its objects. ``start`` None: the newest timestamp in it.

        Raises ``DumpRefused``, ``DumpUnreadable``, ``DumpEmpty`` and ``StartRefused``.
        """
        area = posixpath.join(AREA, f"dump-{uuid4().hex}")
        try:
            files, has_duplicates = self._write_dump(reader, area)
            if not reader.lines and not may_be_empty:
                raise DumpEmpty(dump)
            begun = reader.newest if start is None else start
            if begun is None:
                raise StartRefused("newest", "needs a dump with at least one object")
            key = run_key(reader.digest, begun)
            found = DumpSummary(key, dump, begun, reader.lines, has_duplicates, tuple(files))
            self._keep(_dump(key), found)
        except BaseException:
            self.folder.remove_area(area)
            raise
        reach(FaultPoint.SYNC_DUMPED)
        return found

    def _write_dump(self, reader: DumpReader, area: str) -> tuple[list[str], bool]:
        """Returns the files, and whether an object may have several lines."""
        batches, hashes, files = reader.batches(), array("q"), list[str]()
        while some := list(islice(batches, BATCHES_A_FILE)):
            files.append(posixpath.join(area, f"{len(files):05d}.parquet"))
            with self.folder.create(files[-1]) as sink, pq.ParquetWriter(sink, DUMP) as writer:
                for batch in some:
                    objects = zip(*(batch.column(name).to_pylist() for name in ("type", "id")), strict=True)
                    hashes.extend(map(hash, objects))
                    writer.write_batch(batch)
        # Hashes that are equal by chance only cost a step that changes nothing.
        return files, len(np.unique(np.array(hashes, np.int64))) < len(hashes)

    def dump(self, key: str) -> DumpSummary:
        """The dump of a run. Raises ``DiffMissing``."""
        return self._kept(key, _dump(key), DumpSummary)

    def dumped(self, path: str) -> Iterator[pa.RecordBatch]:
        """The objects in one of a dump's files."""
        return self._batches(path)

    # The comparison

    def write_diff(self, key: str, t: int, rows: Iterable[pa.RecordBatch]) -> str | None:
        """Write a file of corrections under a name of its own; None where there are none."""
        found = (batch for batch in rows if batch.num_rows)
        if (first := next(found, None)) is None:
            return None
        path = posixpath.join(_area(key, t), f"{uuid4().hex}.parquet")
        with self.folder.stage(AREA) as staged:
            with pq.ParquetWriter(staged.sink, DIFF) as writer:
                for batch in chain([first], found):
                    writer.write_batch(batch)
            staged.settle(path)
        return path

    def keep_diff(self, diff: DiffSummary) -> None:
        """Keep a comparison whose files are written: it counts from now on."""
        self._keep(posixpath.join(_area(diff.key, diff.t), "diff.json"), diff)
        reach(FaultPoint.SYNC_DIFFED)

    def diff(self, key: str, t: int) -> DiffSummary:
        """A comparison. Raises ``DiffMissing``."""
        return self._kept(key, posixpath.join(_area(key, t), "diff.json"), DiffSummary)

    def has_diff(self, key: str, t: int) -> bool:
        """Whether an earlier attempt has finished this comparison."""
        return self.folder.exists(posixpath.join(_area(key, t), "diff.json"))

    def stored(self, diff: DiffSummary) -> dict[bytes, Place | None]:
        """The objects to correct by their keys, each with the place of its newest operation that is known."""
        found: dict[bytes, Place | None] = {}
        for path in diff.files:
            for batch in self._batches(path, ["type", "id", "stored_partition", "stored_offset"]):
                columns = [column.to_pylist() for column in batch.columns]
                for type_, id_, partition, offset in zip(*columns, strict=True):
                    found[object_key(type_, id_)] = None if partition is None else (partition, offset)
        return found

    def corrections(self, diff: DiffSummary) -> Iterator[ObjectOperation]:
        """The operations to send: what is there first, deletes last."""
        for wants_deletes in (False, True):
            for path in diff.files:
                for batch in self._batches(path, OPERATION):
                    is_delete = pc.equal(batch.column("event"), EventName.DELETE.value)
                    yield from operations_of(
                        batch.filter(is_delete if wants_deletes else pc.invert(is_delete))
                    )

    # What became of it

    @contextmanager
    def settling(self, diff: DiffSummary) -> Iterator[SettledFile]:
        """A new file for what becomes of corrections; complete at the end of the block."""
        path = posixpath.join(_area(diff.key, diff.t), f"settled-{uuid4().hex}.parquet")
        with self.folder.stage(AREA) as staged:
            with pq.ParquetWriter(staged.sink, SETTLED) as writer:
                settled = SettledFile(writer)
                yield settled
            staged.settle(path)
        settled.path = path

    def keep_sent(self, diff: DiffSummary, sent: SentSummary) -> None:
        """Keep the end of a sending."""
        self._keep(_sent(diff), sent)
        reach(FaultPoint.SYNC_SENT)

    def sent(self, diff: DiffSummary) -> SentSummary:
        """The end of the sending. Raises ``DiffMissing`` before it."""
        return self._kept(diff.key, _sent(diff), SentSummary)

    def settled(self, sent: SentSummary) -> Iterator[list[Settled]]:
        """What became of each correction, some at a time."""
        return (settled_of(batch) for batch in self._batches(sent.file))

    # The end

    def keep_report(self, key: str, t: int, report: Mapping[str, Any]) -> None:
        """Keep the report of a run for ever."""
        self._keep(_report(key, t), report)
        reach(FaultPoint.SYNC_REPORTED)

    def report(self, key: str, t: int) -> dict[str, Any] | None:
        """The report of a run; None before its end."""
        path = _report(key, t)
        return self._kept(key, path, dict[str, Any]) if self.folder.exists(path) else None

    def remove(self, key: str) -> None:
        """Remove the files of a run that is finished, except its report."""
        if self.folder.exists(_dump(key)):
            for path in self.dump(key).files:
                self.folder.remove_area(posixpath.dirname(path))
        self.folder.remove_area(posixpath.join(AREA, key))

    def reports(self) -> list[dict[str, Any]]:
        """The reports of all runs, oldest first."""
        paths = self.folder.list_files(REPORTS, ".json")
        return [msgspec.json.decode(self.folder.read(path), type=dict[str, Any]) for path in paths]

    def remove_old(self, now: int) -> None:
        """Remove the files of runs that were not finished, and that changed last so long before ``now``."""
        newest: dict[str, int] = {}
        for file in self.folder.walk(AREA):
            area = posixpath.join(*file.path.split("/")[:2])
            changed = (self.folder.condition(file.path).changed_at or now * 1_000) // 1_000
            newest[area] = max(changed, newest.get(area, 0))
        for area, changed in newest.items():
            if area != REPORTS and now - changed > LIFE:
                self.folder.remove_area(area)

    def _batches(self, path: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        with self.folder.open(path) as source, pq.ParquetFile(source) as file:
            yield from file.iter_batches(ROWS_AT_ONCE, columns=columns)

    def _keep(self, path: str, value: object) -> None:
        self.folder.replace(path, msgspec.json.format(msgspec.json.encode(value)), AREA)

    def _kept(self, key: str, path: str, kind: type[Kind]) -> Kind:
        if not self.folder.exists(path):
            raise DiffMissing(self.pipeline, key)
        return msgspec.json.decode(self.folder.read(path), type=kind)


def _area(key: str, t: int) -> str:
    return posixpath.join(AREA, key, f"{t:020d}")


def _report(key: str, t: int) -> str:
    return posixpath.join(REPORTS, f"{t:020d}-{key}.json")


def _dump(key: str) -> str:
    return posixpath.join(AREA, key, "dump.json")


def _sent(diff: DiffSummary) -> str:
    return posixpath.join(_area(diff.key, diff.t), "sent.json")
