"""Where a verification's evidence comes from: the log's files and a keyspace's tables, read in tasks.

Python reads both, so that what is not wanted never reaches Spark: messages of other entities, and payloads
of rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import estimated_bytes, ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring, deal
from tidemark.connections import CassandraConnection
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.manifest import LogFile
from tidemark.pipeline.model import JournalDeclaration
from tidemark.spark.jobs.evidence import (
    SCHEMA,
    Evidence,
    EvidenceKind,
    batches_of,
    of_head,
    of_message,
    of_row,
)
from tidemark.verification.journal.messages import read_keys, read_records
from tidemark.verification.journal.scan import JournalScan
from tidemark.verification.selection import Choice, EntitySelection, Hashed, Hashes, hashes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 2
"""Pieces of work for every core: they are never equally large."""
BYTES_A_SPLIT = 64 * 2**20
RANGES_A_SPLIT = 8
"""So that several can be under way, and none is long."""


def run_tasks(
    spark: "SparkSession", tasks: Sequence[Any], work: Callable[[Any], Iterable[Evidence]]
) -> "DataFrame":
    """The evidence that comes of pieces of work, each done in a task of its own."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from batches_of(work(tasks[number]))

    schema = from_arrow_schema(SCHEMA)
    if not tasks:
        return spark.createDataFrame([], schema)
    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, schema)


def read_log(
    spark: "SparkSession", folder: LogFolder, files: Sequence[LogFile], choice: Choice, last_id: int
) -> "DataFrame":
    """The messages of the chosen entities up to an id."""

    def read(group: Sequence[LogFile]) -> Iterator[Evidence]:
        for file in group:
            for key, record in read_records(folder, file, choice, last_id):
                yield of_message(file.topic, key, record)

    return run_tasks(spark, deal_files(files, _tasks(spark)), read)


def hash_entities(
    spark: "SparkSession",
    folder: LogFolder,
    files: Sequence[LogFile],
    last_id: int,
    selection: EntitySelection,
) -> Hashed:
    """The entities that have messages in these files, of the selection's bindings, as a choice."""
    seed = selection.seed

    def read(group: Sequence[LogFile]) -> bytes:
        keys = ((file.topic, list(read_keys(folder, file, last_id, 0, selection))) for file in group)
        hashes = (hashes_of(topic, of_file, seed) for topic, of_file in keys)
        return Hashed.of(hashes, seed).hashes.tobytes()

    groups = deal_files(files, _tasks(spark))
    found = spark.sparkContext.parallelize(groups, len(groups)).map(read).collect() if groups else []
    return Hashed.of((_hashes(data) for data in found), seed)


def read_heads(
    spark: "SparkSession",
    connection: CassandraConnection,
    journal: JournalDeclaration,
    topics: frozenset[str],
    kind: EvidenceKind = EvidenceKind.HEAD,
) -> "DataFrame":
    """All heads of these topics."""

    def read(parts: Sequence[TokenRange]) -> Iterator[Evidence]:
        for topic, key, head in JournalScan(connection, journal, topics).heads(parts):
            yield of_head(topic, key, head, kind)

    return run_tasks(spark, _splits(spark, connection, journal.keyspace, journal.tables.metajournal), read)


def read_rows(
    spark: "SparkSession",
    connection: CassandraConnection,
    journal: JournalDeclaration,
    topics: frozenset[str],
    kind: EvidenceKind = EvidenceKind.ROW,
) -> "DataFrame":
    """All rows of these topics."""

    def read(parts: Sequence[TokenRange]) -> Iterator[Evidence]:
        for topic, key, row in JournalScan(connection, journal, topics).rows(parts):
            yield of_row(topic, key, row, kind)

    return run_tasks(spark, _splits(spark, connection, journal.keyspace, journal.tables.journal), read)


def deal_files(files: Sequence[LogFile], hands: int) -> list[list[LogFile]]:
    """The files in at most so many groups of about the same size."""
    groups: list[list[LogFile]] = [[] for _ in range(min(hands, len(files)))]
    sizes = [0] * len(groups)
    for file in sorted(files, key=lambda one: one.bytes, reverse=True):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(file)
        sizes[smallest] += file.bytes
    return groups


def _tasks(spark: "SparkSession") -> int:
    return TASKS_A_CORE * spark.sparkContext.defaultParallelism


def _hashes(data: bytes) -> Hashes:
    return np.frombuffer(data, np.uint32)


def _splits(
    spark: "SparkSession", connection: CassandraConnection, keyspace: str, table: str
) -> list[list[TokenRange]]:
    """The whole ring, in as many pieces as there are tasks."""
    session = connect(connection)
    tasks = max(_tasks(spark), estimated_bytes(session, keyspace, table) // BYTES_A_SPLIT)
    return deal(cut_ring(ring_tokens(session), tasks * RANGES_A_SPLIT), tasks)
