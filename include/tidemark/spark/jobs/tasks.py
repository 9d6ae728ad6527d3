"""Pieces of work, each done in a Spark task of its own.

Used where Python reads the data in the tasks: files of the log, ranges of a Cassandra table. Spark only
distributes the numbers of the pieces.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring, deal
from tidemark.connections import CassandraConnection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 2
"""More than one, because pieces of work differ in size."""
RANGES_A_TASK = 8
"""Several, so that a task reads some concurrently and none takes long."""


def task_count(spark: "SparkSession", per_core: int = TASKS_A_CORE) -> int:
    """The number of tasks that keeps every core of the session busy."""
    return per_core * spark.sparkContext.defaultParallelism


def run_tasks(
    spark: "SparkSession", tasks: int, work: Callable[[int], Iterable[pa.RecordBatch]], schema: pa.Schema
) -> "DataFrame":
    """A lazy DataFrame of what ``work`` returns for the numbers from 0 to ``tasks`` - 1, one task each."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from work(number)

    columns = from_arrow_schema(schema)
    if not tasks:
        return spark.createDataFrame([], columns)
    return spark.range(0, tasks, 1, tasks).mapInArrow(run, columns)


def split_ring(connection: CassandraConnection, tasks: int) -> list[list[TokenRange]]:
    """The whole token ring of a cluster, cut into the ranges of each task."""
    return deal(cut_ring(ring_tokens(connect(connection)), tasks * RANGES_A_TASK), tasks)
