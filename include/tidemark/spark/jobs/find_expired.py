"""Expired entities, found by Spark tasks: each queries the index for some token ranges.

For days on which more entities expired than one process finds quickly. The index is queried, heads are never
scanned. Counts return to the driver, and the entities where the caller collects them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemark.expiry.heads import JournalHeads, find_expired
from tidemark.expiry.plan import SHOWN, Expired, PurgePlan
from tidemark.spark.jobs.tasks import run_tasks, split_ring, task_count
from tidemark.writers.journal.writer import JournalWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_A_BATCH = 2_000
COLUMNS = [field.name for field in fields(Expired)]
_TYPES = (pa.date32(), pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64())
SCHEMA = pa.schema(list(zip(COLUMNS, _TYPES, strict=True)))


def read_expired(
    spark: "SparkSession", journal: JournalWriter, days: Sequence[date], is_ours: Callable[[str], bool]
) -> "DataFrame":
    """The entities that expired on these days, each once, of the topics for which ``is_ours`` is true."""
    groups = split_ring(journal.connection, task_count(spark))

    def read(number: int) -> Iterator[pa.RecordBatch]:
        return _batches(find_expired(JournalHeads(journal, groups[number]), days, is_ours))

    found = run_tasks(spark, len(groups), read, SCHEMA)
    # A head that is being moved to another segment is in both for a moment.
    return found.dropDuplicates(["day", "topic", "key"])


def plan_of(pipeline: str, writer: str, days: Sequence[date], found: "DataFrame") -> PurgePlan:
    """The purge plan for these days, with the first of the entities found."""
    counts = {row["day"]: row["count"] for row in found.groupBy("day").count().collect()}
    first = found.orderBy(*COLUMNS).limit(SHOWN)
    asked = tuple((day, counts.get(day, 0)) for day in sorted({*days, *counts}))
    return PurgePlan(pipeline, writer, asked, tuple(collect_expired(first)))


def collect_expired(found: "DataFrame") -> list[Expired]:
    """The entities as values, sorted in the order of the purge."""
    return sorted(Expired(*row) for row in found.select(*COLUMNS).collect())


def _batches(found: Iterable[Expired]) -> Iterator[pa.RecordBatch]:
    rows: list[Expired] = []
    for one in found:
        rows.append(one)
        if len(rows) == ROWS_A_BATCH:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[Expired]) -> pa.RecordBatch:
    columns = zip(*map(astuple, rows), strict=True)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, _TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
