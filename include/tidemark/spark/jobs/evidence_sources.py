"""Reads the evidence of a verification in Spark tasks: files of the log and tables of a keyspace.

Python reads both and filters them, so that Spark never handles messages of other entities or payloads of
rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import estimated_bytes
from tidemark.cassandra.token_ranges import TokenRange
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
from tidemark.spark.jobs.tasks import call_in_tasks, run_tasks, split_ring, task_count
from tidemark.verification.journal.messages import read_keys, read_records
from tidemark.verification.journal.scan import JournalScan
from tidemark.verification.selection import Choice, EntitySelection, Hashed, Hashes, hashes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BYTES_A_TASK = 64 * 2**20


def gather(
    spark: "SparkSession", pieces: Sequence[Any], read: Callable[[Any], Iterable[Evidence]]
) -> "DataFrame":
    """The evidence that ``read`` returns for these pieces of work, each read in a task of its own."""
    return run_tasks(spark, len(pieces), lambda number: batches_of(read(pieces[number])), SCHEMA)


def read_log(
    spark: "SparkSession", folder: LogFolder, files: Sequence[LogFile], choice: Choice, last_id: int
) -> "DataFrame":
    """The messages of the chosen entities, up to ``last_id``."""

    def read(group: Sequence[LogFile]) -> Iterator[Evidence]:
        for file in group:
            for key, record in read_records(folder, file, choice, last_id):
                yield of_message(file.topic, key, record)

    return gather(spark, deal_files(files, task_count(spark)), read)


def hash_entities(
    spark: "SparkSession",
    folder: LogFolder,
    files: Sequence[LogFile],
    last_id: int,
    selection: EntitySelection,
) -> Hashed:
    """The entities with messages in these files and in the selection's bindings, as a set of hashes."""
    seed = selection.seed

    def read(group: Sequence[LogFile]) -> bytes:
        keys = ((file.topic, list(read_keys(folder, file, last_id, 0, selection))) for file in group)
        hashes = (hashes_of(topic, of_file, seed) for topic, of_file in keys)
        return Hashed.of(hashes, seed).hashes.tobytes()

    found = call_in_tasks(spark, read, deal_files(files, task_count(spark)) if files else [])
    return Hashed.of((_hashes(data) for data in found), seed)


def read_table(
    spark: "SparkSession",
    connection: CassandraConnection,
    journal: JournalDeclaration,
    topics: frozenset[str],
    kind: EvidenceKind,
) -> "DataFrame":
    """All heads or all rows of these topics, depending on ``kind``, as evidence of that kind."""
    is_head = kind in (EvidenceKind.HEAD, EvidenceKind.OTHER_HEAD)

    def read(ranges: Sequence[TokenRange]) -> Iterator[Evidence]:
        scan = JournalScan(connection, journal, topics)
        if is_head:
            return (of_head(*head, kind) for head in scan.heads(ranges))
        return (of_row(*row, kind) for row in scan.rows(ranges))

    table = journal.tables.metajournal if is_head else journal.tables.journal
    size = estimated_bytes(connect(connection), journal.keyspace, table)
    tasks = max(task_count(spark), size // BYTES_A_TASK)
    return gather(spark, split_ring(connection, tasks), read)


def deal_files(files: Sequence[LogFile], most: int) -> list[list[LogFile]]:
    """The files in groups of similar size in bytes, ``most`` groups or fewer, none empty."""
    groups: list[list[LogFile]] = [[] for _ in range(min(most, len(files)))]
    sizes = [0] * len(groups)
    for file in sorted(files, key=lambda one: one.bytes, reverse=True):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(file)
        sizes[smallest] += file.bytes
    return groups


def _hashes(data: bytes) -> Hashes:
    return np.frombuffer(data, np.uint32)
