"""The comparison of a dump with a collection's objects: a full outer join, whose corrections become files.

What is decided about an object is in ``oplog.sync.decisions``. Objects that are the same are only counted.
Sends nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.cassandra.session import connect
from tidemark.collection.tables.tables import CollectionTables
from tidemark.oplog.sync.barrier import NOTHING_BOUND, KnownOperations
from tidemark.oplog.sync.current_objects import scan_current
from tidemark.oplog.sync.decisions import CurrentObject, DumpedObject, Outcome, correction, decide
from tidemark.oplog.sync.file_columns import CURRENT, DIFF, DUMP
from tidemark.oplog.sync.kafka_operations import TopicState
from tidemark.oplog.sync.report import correction_line
from tidemark.oplog.sync.run_files import DiffSummary, DumpSummary, SyncFiles
from tidemark.oplog.sync.synchronisation import Synchronisation
from tidemark.spark.code_digests import CodeDigests
from tidemark.spark.jobs.tasks import run_tasks, split_ring, task_count

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SHOWN = 100
"""The most corrections that a plan lists."""

_FOUND = pa.schema([("found", pa.binary())])
_PAIRED = ("is_same", "type", "id", "line", "dumped_at", "dumped_parents", *CURRENT.names[2:])


@dataclass
class FoundPart:
    """What a task has found.

    Attributes:
        outcomes: The number of objects by their outcome.
        live: The number of objects that are there.
        files: The paths of the files that it has written.
        first: Some of the corrections, as people read them.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    live: int = 0
    files: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)


def compare(
    spark: "SparkSession",
    sync: Synchronisation,
    dump: DumpSummary,
    topic: TopicState,
    known: KnownOperations,
) -> DiffSummary:
    """Compare a dump with the objects at a time, and keep what differs, unless an earlier attempt has."""
    if sync.files.has_diff(dump.key, known.t):
        return sync.files.diff(dump.key, known.t)
    dumped, current = read_dump(spark, sync.files, dump), read_objects(spark, sync, known.t)
    found = find_differences(dumped, current, sync.files, dump, known.t)
    diff = DiffSummary(
        dump.key,
        known.t,
        topic.topic,
        topic.topic_id,
        dict(known.starts),
        found.outcomes,
        found.live,
        tuple(found.files),
        tuple(found.first),
    )
    sync.files.keep_diff(diff)
    return diff


def read_dump(spark: "SparkSession", files: SyncFiles, dump: DumpSummary) -> "DataFrame":
    """The objects of a dump, each once: its newest line counts, of equally new ones the last."""
    from pyspark.sql import functions as f

    paths = dump.files

    def read(number: int) -> Iterator[pa.RecordBatch]:
        for batch in files.dumped(paths[number]):
            yield batch.select(DUMP.names).cast(DUMP)

    found = run_tasks(spark, len(paths), read, DUMP)
    if not dump.has_duplicates:
        return found
    newest = f.max(f.struct("timestamp", "line", "parents")).alias("newest")
    return found.groupBy("type", "id").agg(newest).select("type", "id", "newest.*")


def read_objects(spark: "SparkSession", sync: Synchronisation, t: int) -> "DataFrame":
    """The objects of a collection at a time, deleted ones included; the time is held for a term."""
    if t == NOTHING_BOUND:
        return run_tasks(spark, 0, lambda number: (), CURRENT)
    from tidemark.spark.source.collection import CollectionRead

    read = CollectionRead.of(sync.settings, t)
    groups = split_ring(read.connection, task_count(spark))

    def scan(number: int) -> Iterator[pa.RecordBatch]:
        read.check()
        tables = CollectionTables.of(connect(read.connection), read.place)
        for batch in scan_current(tables, t, groups[number]):
            read.check()
            yield batch

    return run_tasks(spark, len(groups), scan, CURRENT)


def find_differences(
    dumped: "DataFrame", current: "DataFrame", files: SyncFiles, dump: DumpSummary, t: int
) -> FoundPart:
    """Join a dump's objects with those of a collection, and write the corrections to files."""
    from pyspark.sql.pandas.types import from_arrow_schema

    write = _Writing(files, dump, t, CodeDigests.loaded())
    found = pair(dumped, current).mapInArrow(write, from_arrow_schema(_FOUND)).collect()
    parts = [msgspec.msgpack.decode(bytes(row.found), type=FoundPart) for row in found]
    outcomes: Counter[str] = Counter()
    for part in parts:
        outcomes.update(part.outcomes)
    return FoundPart(
        {one.value: outcomes[one] for one in Outcome if outcomes[one]},
        sum(part.live for part in parts),
        sorted(path for part in parts for path in part.files),
        sorted(line for part in parts for line in part.first)[:SHOWN],
    )


def pair(dumped: "DataFrame", current: "DataFrame") -> "DataFrame":
    """Both sides of every object; of one that is the same in both, only that it is."""
    from pyspark.sql import functions as f

    left = dumped.select(
        "type", "id", "line", dumped.timestamp.alias("dumped_at"), dumped.parents.alias("dumped_parents")
    )
    joined = left.join(current, ["type", "id"], "full_outer")
    is_same: Column = f.coalesce(
        (f.col("dumped_at") == f.col("timestamp"))
        & (f.col("dumped_parents") == f.col("parents"))
        & ~f.col("deleted"),
        f.lit(False),
    )
    marked = joined.withColumn("is_same", is_same)
    others = [f.when(~f.col("is_same"), f.col(name)).alias(name) for name in _PAIRED[1:]]
    return marked.select("is_same", *others)


@dataclass(frozen=True)
class _Writing:
    """The function that Spark calls with the pairs of a partition. Its class is pickled by reference."""

    files: SyncFiles
    dump: DumpSummary
    t: int
    code: CodeDigests

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.code.require()
        deciding = _Deciding(self.dump.start)
        path = self.files.write_diff(self.dump.key, self.t, deciding.corrections(batches))
        found = deciding.found
        if path is not None:
            found.files.append(path)
        found.outcomes = dict(deciding.outcomes)
        yield pa.record_batch([[msgspec.msgpack.encode(found)]], schema=_FOUND)


class _Deciding:
    """Decides about pairs, and counts the outcomes."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.outcomes: Counter[str] = Counter()
        self.found = FoundPart()

    def corrections(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The corrections among these pairs, in the columns of ``DIFF``."""
        for batch in batches:
            is_same = batch.column("is_same")
            same = is_same.true_count
            self.found.live += same
            if same:
                self.outcomes[Outcome.SAME.value] += same
            rows = list(self._differing(batch.filter(pc.invert(is_same))))
            if rows:
                yield pa.record_batch(list(zip(*rows, strict=True)), schema=DIFF)

    def _differing(self, batch: pa.RecordBatch) -> Iterator[Sequence[Any]]:
        columns = [batch.column(name).to_pylist() for name in _PAIRED[1:]]
        for type_, id_, line, *sides in zip(*columns, strict=True):
            dumped_at, dumped_parents, deleted, timestamp, parents, partition, offset = sides
            dumped = None if line is None else DumpedObject(dumped_at, tuple(dumped_parents or ()))
            current = None if deleted is None else CurrentObject(deleted, timestamp, tuple(parents or ()))
            outcome = decide(dumped, current, self._start)
            self.outcomes[outcome.value] += 1
            self.found.live += deleted is False
            sent = correction(type_, id_, outcome, dumped, current, self._start)
            if sent is not None:
                if len(self.found.first) < SHOWN:
                    self.found.first.append(correction_line(sent, outcome))
                row = (sent.type, sent.id, sent.event.value, sent.timestamp, sent.parents)
                yield (*row, outcome.value, partition, offset)
