"""Offset logs on Spark: which writers have one worth compacting, counted from the control plane's table.

It only counts. What is removed is decided by ``delivery/offset_plan.py`` on linearizable reads, because a
read of Spark's waits for a quorum of one data centre and may not know of the newest rewind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.connections import CassandraConnection
from tidemark.consensus.lightweight import KEYSPACE
from tidemark.consensus.objects import ObjectKind
from tidemark.delivery.state.offset_log_plan import ACK
from tidemark.spark.source.cassandra import NAME, register_cassandra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class OffsetLogSize:
    """One writer's offset log, as large as Spark found it."""

    name: str
    """``pipeline/writer``."""
    rows: int
    bytes: int


def read_objects(spark: "SparkSession", control: CassandraConnection) -> "DataFrame":
    """The control plane's table; only partitions that a filter names are read."""
    register_cassandra(spark, control)
    options = {"keyspace": KEYSPACE, "table": "object", "columns": "kind,name,row,body"}
    return spark.read.format(NAME).options(**options).load()


def count_entries(objects: "DataFrame", names: Sequence[str]) -> "DataFrame":
    """How many rows and bytes the offset logs of these writers have; those without one are left out."""
    from pyspark.sql import functions as f

    mine = (f.col("kind") == ObjectKind.WRITER.value) & f.col("name").isin(list(names))
    size = f.octet_length("row") + f.octet_length("body")
    return (
        objects.where(mine)
        .where(f.col("row").startswith(ACK))
        .groupBy("name")
        .agg(f.count("*").alias("rows"), f.sum(size).alias("bytes"))
    )


def collect_counts(counts: "DataFrame") -> list[OffsetLogSize]:
    """The counts as values, one for each writer, by name: sorted here, a sort on Spark would read twice."""
    found = [OffsetLogSize(one["name"], one["rows"], one["bytes"]) for one in counts.collect()]
    return sorted(found, key=lambda one: one.name)
