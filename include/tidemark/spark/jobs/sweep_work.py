"""A census of a work journal: Spark tasks scan the entries, each some token ranges.

Counts and the keys of entries whose hints are lost return to the driver, never a payload.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from tidemark.cassandra.session import connect
from tidemark.cassandra.token_ranges import TokenRange
from tidemark.connections import CassandraConnection
from tidemark.spark.jobs.tasks import run_tasks, split_ring, task_count
from tidemark.work.open_journal import open_parts
from tidemark.work.queue.census import EntryCensus, scan_entries, take_census

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = pa.schema([pa.field("census", pa.binary())])


def census_with_spark(
    spark: "SparkSession", connection: CassandraConnection, journal: str, keyspace: str
) -> EntryCensus:
    """Count the journal's entries, and find those whose hints are lost."""
    groups = split_ring(connection, task_count(spark))

    def count(number: int) -> Iterator[pa.RecordBatch]:
        found = msgspec.json.encode(_count(connection, journal, keyspace, groups[number]))
        yield pa.RecordBatch.from_pydict({"census": pa.array([found], pa.binary())})

    total = EntryCensus()
    for row in run_tasks(spark, len(groups), count, _SCHEMA).collect():
        total.add(msgspec.json.decode(bytes(row.census), type=EntryCensus))
    return total


def _count(
    connection: CassandraConnection, journal: str, keyspace: str, ranges: list[TokenRange]
) -> EntryCensus:
    session = connect(connection)
    parts = open_parts(session, journal, keyspace)
    return take_census(parts, scan_entries(session, parts, ranges))
