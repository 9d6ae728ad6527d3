"""The comparison of a dump with a collection's objects: a full outer join, whose corrections become files.

What is decided about an object is in ``oplog.sync.comparison``. Sends nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from tidemark.cassandra.session import connect
from tidemark.collection.tables.tables import CollectionTables
from tidemark.oplog.sync.barrier import NOTHING_BOUND, KnownOperations
from tidemark.oplog.sync.comparison import PAIRED, Comparison, Found
from tidemark.oplog.sync.current_objects import scan_current
from tidemark.oplog.sync.file_columns import CURRENT, DUMP
from tidemark.oplog.sync.kafka_operations import TopicState
from tidemark.oplog.sync.run_files import DiffSummary, DumpSummary, SyncFiles
from tidemark.oplog.sync.synchronisation import Synchronisation
from tidemark.spark.code_digests import CodeDigests
from tidemark.spark.jobs.tasks import run_tasks, split_ring, task_count

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PLAIN_PATH = re.compile(r"/[A-Za-z0-9/._-]+")
"""A path of the local disk without characters that Spark takes for a pattern."""
_FOUND = pa.schema([("found", pa.binary())])


def compare(
    spark: "SparkSession",
    sync: Synchronisation,
    dump: DumpSummary,
    topic: TopicState,
    known: KnownOperations,
) -> DiffSummary:
    """Compare a dump with the objects at a time, and keep what differs, unless an earlier attempt has."""
    if sync.files.has_diff(dump.key, known.t):
        kept = sync.files.diff(dump.key, known.t)
        if (kept.topic_id, kept.starts) == (topic.topic_id, known.starts):
            return kept
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
        found.files,
        found.first,
    )
    sync.files.keep_diff(diff)
    return diff


def read_dump(spark: "SparkSession", files: SyncFiles, dump: DumpSummary) -> "DataFrame":
    """The objects of a dump, each once: its newest line counts, of equally new ones the last."""
    from pyspark.sql import functions as f

    found = _read_files(spark, files, dump.files)
    if not dump.has_duplicates:
        return found
    newest = f.max(f.struct("timestamp", "line", "parents")).alias("newest")
    return found.groupBy("type", "id").agg(newest).select("type", "id", "newest.*")


def _read_files(spark: "SparkSession", files: SyncFiles, paths: Sequence[str]) -> "DataFrame":
    """The files of a dump: by Spark itself where it reads the same disk, else by its tasks."""
    from pyspark.sql.pandas.types import from_arrow_schema

    addresses = [files.folder.address(path) for path in paths]
    if addresses and all(map(_PLAIN_PATH.fullmatch, addresses)):
        return spark.read.schema(from_arrow_schema(DUMP)).parquet(*(f"file://{path}" for path in addresses))

    def read(number: int) -> Iterator[pa.RecordBatch]:
        for batch in files.dumped(paths[number]):
            yield batch.select(DUMP.names).cast(DUMP)

    return run_tasks(spark, len(paths), read, DUMP)


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
) -> Found:
    """Join a dump's objects with those of a collection, and write the corrections to files."""
    from pyspark.sql.pandas.types import from_arrow_schema

    write = _Writing(files, dump, t, CodeDigests.loaded())
    rows = differing_pairs(dumped, current).mapInArrow(write, from_arrow_schema(_FOUND)).collect()
    found = Found.sum(msgspec.msgpack.decode(bytes(row.found), type=Found) for row in rows)
    return found.with_same(dumped.count() if dump.has_duplicates else dump.lines)


def differing_pairs(dumped: "DataFrame", current: "DataFrame") -> "DataFrame":
    """Both sides of every object that is not the same in both."""
    from pyspark.sql import functions as f

    left = dumped.select(
        "type", "id", "line", dumped.timestamp.alias("dumped_at"), dumped.parents.alias("dumped_parents")
    )
    is_same: Column = (
        (f.col("dumped_at") == f.col("timestamp"))
        & (f.col("dumped_parents") == f.col("parents"))
        & ~f.col("deleted")
    )
    joined = left.join(current, ["type", "id"], "full_outer")
    return joined.filter(~f.coalesce(is_same, f.lit(False))).select(*PAIRED)


@dataclass(frozen=True)
class _Writing:
    """The function that Spark calls with the pairs of a partition. Its class is pickled by reference."""

    files: SyncFiles
    dump: DumpSummary
    t: int
    code: CodeDigests

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.code.require()
        comparison = Comparison(self.dump.start)
        path = self.files.write_diff(self.dump.key, self.t, comparison.corrections(batches))
        found = comparison.found([path] if path else [])
        yield pa.record_batch([[msgspec.msgpack.encode(found)]], schema=_FOUND)
