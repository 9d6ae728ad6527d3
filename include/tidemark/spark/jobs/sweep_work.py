"""A census of a work journal in Spark's tasks: each scans a part of the table where it lies.

What comes back to the driver is counts and the keys of entries whose hints are lost, never a payload.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring, deal
from tidemark.connections import CassandraConnection
from tidemark.work.open_journal import open_parts
from tidemark.work.queue.census import EntryCensus, scan_entries, take_census

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_A_CORE = 2
RANGES_A_TASK = 8


def census_with_spark(
    spark: "SparkSession", connection: CassandraConnection, journal: str, keyspace: str
) -> EntryCensus:
    """Count the journal's entries, and find those whose hints are lost."""
    hands = TASKS_A_CORE * spark.sparkContext.defaultParallelism
    ranges = cut_ring(ring_tokens(connect(connection)), hands * RANGES_A_TASK)
    groups = deal(ranges, hands)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                found = msgspec.json.encode(_count(connection, journal, keyspace, groups[number]))
                yield pa.RecordBatch.from_pydict({"census": pa.array([found], pa.binary())})

    rows = spark.range(0, len(groups), 1, len(groups)).mapInArrow(count, "census binary").collect()
    total = EntryCensus()
    for row in rows:
        total.add(msgspec.json.decode(bytes(row.census), type=EntryCensus))
    return total


def _count(
    connection: CassandraConnection, journal: str, keyspace: str, ranges: list[TokenRange]
) -> EntryCensus:
    session = connect(connection)
    parts = open_parts(session, journal, keyspace)
    return take_census(parts, scan_entries(session, parts, ranges))
