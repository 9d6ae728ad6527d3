"""Expired entities found by many: every task asks the index for ranges of tokens of its own.

For days on which so many expired that one process would take long. Never reads all heads. What comes back to
the driver is counts and, where that is asked for, the entities.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemark.cassandra.session import connect
from tidemark.cassandra.size import ring_tokens
from tidemark.cassandra.token_ranges import cut_ring, deal
from tidemark.expiry.heads import JournalHeads, find_expired
from tidemark.expiry.plan import SHOWN, Expired, PurgePlan
from tidemark.writers.journal.writer import JournalWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 2
RANGES_A_TASK = 8
ROWS_A_BATCH = 2_000
SCHEMA = "day date, topic string, key string, partition int, offset long, rows long"
COLUMNS = [field.name for field in fields(Expired)]


def read_expired(
    spark: "SparkSession", journal: JournalWriter, days: Sequence[date], is_ours: Callable[[str], bool]
) -> "DataFrame":
    """The entities that expired on these days, each once."""
    hands = TASKS_A_CORE * spark.sparkContext.defaultParallelism
    groups = deal(cut_ring(ring_tokens(connect(journal.connection)), hands * RANGES_A_TASK), hands)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from _batches(find_expired(JournalHeads(journal, groups[number]), days, is_ours))

    found = spark.range(0, len(groups), 1, len(groups)).mapInArrow(read, SCHEMA)
    # A head that was moved to another segment is there twice for a moment.
    return found.dropDuplicates(["day", "topic", "key"])


def plan_of(pipeline: str, writer: str, days: Sequence[date], found: "DataFrame") -> PurgePlan:
    """The plan for what was found on these days."""
    counts = {row["day"]: row["count"] for row in found.groupBy("day").count().collect()}
    first = found.orderBy(*COLUMNS).limit(SHOWN)
    asked = tuple((day, counts.get(day, 0)) for day in sorted({*days, *counts}))
    return PurgePlan(pipeline, writer, asked, tuple(collect_expired(first)))


def collect_expired(found: "DataFrame") -> list[Expired]:
    """The entities as values, in the order in which they are purged."""
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
    types = (pa.date32(), pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64())
    columns = zip(*map(astuple, rows), strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=COLUMNS)
