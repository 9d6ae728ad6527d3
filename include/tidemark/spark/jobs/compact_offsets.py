"""Sizes of offset logs, counted by Spark from the control plane's table: which ones are worth compacting.

This module only counts. ``delivery/state/offset_log_plan.py`` decides what is removed, on linearizable reads:
Spark reads with a local quorum, which may miss the newest rewind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.connections import CassandraConnection
from tidemark.consensus.lightweight import KEYSPACE
from tidemark.consensus.objects import ObjectKind
from tidemark.delivery.state.offset_log_plan import ACK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class OffsetLogSize:
    """The size of one writer's offset log."""

    name: str
    """``pipeline/writer``."""
    rows: int
    bytes: int


def read_objects(spark: "SparkSession", control: CassandraConnection) -> "DataFrame":
    """The control plane's table. A filter on its partition key is pushed down."""
    from tidemark.spark.source.cassandra import NAME, register_cassandra

    register_cassandra(spark, control)
    options = {"keyspace": KEYSPACE, "table": "object", "columns": "kind,name,row,body"}
    return spark.read.format(NAME).options(**options).load()


def count_entries(objects: "DataFrame", names: Sequence[str]) -> "DataFrame":
    """Rows and bytes of the offset logs of these writers. Writers without an offset log are left out."""
    from pyspark.sql import functions as f

    is_wanted = (f.col("kind") == ObjectKind.WRITER.value) & f.col("name").isin(list(names))
    size = f.octet_length("row") + f.octet_length("body")
    return (
        objects.where(is_wanted)
        .where(f.col("row").startswith(ACK))
        .groupBy("name")
        .agg(f.count("*").alias("rows"), f.sum(size).alias("bytes"))
    )


def collect_counts(counts: "DataFrame") -> list[OffsetLogSize]:
    """The counts as values, sorted by name. Sorted here, because Spark would read the table twice to sort."""
    found = [OffsetLogSize(one["name"], one["rows"], one["bytes"]) for one in counts.collect()]
    return sorted(found, key=lambda one: one.name)
