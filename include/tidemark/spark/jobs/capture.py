"""Kafka records of one binding as files of the commit log.

Spark reads exactly the bound offsets, one task per Kafka partition, numbers them and writes one file each
into an area of this attempt; then every file is counted and takes its place in the log's folder. Nothing is
shuffled, no message passes through Python, nothing is visible to a reader.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from tidemark.connections import KafkaConnection
from tidemark.log.audit import judge, spark_batch
from tidemark.log.errors import RecordsMissing
from tidemark.log.expectations import Suite
from tidemark.log.files.parquet import LOG_SCHEMA, ROWS_PER_GROUP, LogFolder
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.log.model.manifest import LogFile
from tidemark.spark.jobs.read_log import read_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP_BYTES = 32 * 1024 * 1024
"""Small enough that no executor runs short of memory: Spark would then make smaller groups, other bytes."""
READERS = 2
"""How many files are read back at once: each costs the driver one group of rows in memory."""
SINGULAR = ("id", "write_time", "offset", "timestamp", "value")
"""Columns that hardly ever repeat a value: looking for repetitions takes longer than writing them."""
WRITE_OPTIONS = {
    "compression": "zstd",
    "parquet.block.size": str(GROUP_BYTES),
    "parquet.block.row.count.limit": str(ROWS_PER_GROUP),
    "parquet.statistics.truncate.length": "16",
    **{f"parquet.enable.dictionary#{name}": "false" for name in SINGULAR},
}


def read_bound(
    spark: "SparkSession", slices: Sequence[Slice], kafka: KafkaConnection, isolation: str
) -> "DataFrame":
    """The records of these slices, no more and no less."""
    lowers = _per_topic(slices, lambda s: s.lower)
    options = {
        **kafka.spark_options(),
        "kafka.isolation.level": isolation,
        "assign": json.dumps({topic: [int(p) for p in ends] for topic, ends in lowers.items()}),
        "startingOffsets": json.dumps(lowers),
        "endingOffsets": json.dumps(_per_topic(slices, lambda s: s.upper)),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    records = spark.read.format("kafka").options(**options).load()
    return records.selectExpr(
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp) AS timestamp",
        "timestampType AS timestamp_type",
        "key",
        "value",
        "transform(headers, h -> struct(h.key AS name, h.value AS value)) AS headers",
    )


def add_ids(records: "DataFrame", binding: Binding) -> "DataFrame":
    """Kafka's columns → the log's columns."""
    shifts = " ".join(
        f"WHEN topic = '{topic}' AND partition = {partition} THEN {shift}L"
        for (topic, partition), shift in binding.shifts.items()
    )
    numbered = records.selectExpr("*", f"offset + CASE {shifts} END AS id")
    columns = {name: name for name in numbered.columns} | {
        "t": f"{binding.t}L",
        "write_time": f"id + {binding.t - binding.base}L",
        "namespace": "topic",
    }
    return numbered.selectExpr(*(f"{columns[name]} AS {name}" for name in LOG_SCHEMA.names))


def write_files(
    records: "DataFrame",
    binding: Binding,
    slices: Sequence[Slice],
    pipeline: str,
    root: str,
    is_declared: Callable[[str], bool] = lambda namespace: True,
) -> Captured:
    """Write one file per Kafka partition; what was written, in id order."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    folder, seen = LogFolder(pipeline, root), Observation()
    area = folder.new_area(binding.t)
    try:
        read = records.observe(seen, count(lit(1)).alias("rows"))
        add_ids(read, binding).write.mode("append").options(**WRITE_OPTIONS).parquet(folder.area_at(area))
        adopt = partial(folder.adopt_file, binding, slices, is_declared=is_declared)
        # Here and not in tasks: Python workers take longer to start than a run's files take to read.
        with ThreadPoolExecutor(READERS) as threads:
            adopted = [file for file in threads.map(adopt, folder.files_in(area)) if file is not None]
    finally:
        folder.remove_area(area)
    captured = tuple(sorted(adopted, key=lambda one: one.file.first_id))
    check_files([one.file for one in captured], slices, pipeline)
    return Captured(binding.t, captured, seen.get["rows"])


def check_files(files: Sequence[LogFile], slices: Sequence[Slice], pipeline: str) -> None:
    """Refuse a capture that splits a slice over two files: Spark then read other partitions than bound."""
    asked = {(s.topic, s.partition): (s.lower, s.upper) for s in slices}
    for place, count in Counter((file.topic, file.partition) for file in files).items():
        if place not in asked or count > 1:
            found = f"capture gave {count} file{'s' if count > 1 else ''} of it"
            raise RecordsMissing(pipeline, *place, *asked.get(place, (0, 0)), found)


def audit_messages(
    pipeline: str, spark: "SparkSession", paths: Sequence[str], suite: Suite
) -> list[Judgement]:
    """Judge every message by the pipeline's own suite: a second pass, so only where asked for."""
    if not suite.messages or not paths:
        return []
    batch = spark_batch(read_parquet(spark, paths), "messages")
    return judge(pipeline, batch, [(one.notes or one.type, one) for one in suite.messages], ("id",))


def _per_topic(slices: Sequence[Slice], end: Callable[[Slice], int]) -> dict[str, dict[str, int]]:
    """One end of every slice, in the form of Spark's offset options."""
    grouped: dict[str, dict[str, int]] = {}
    for s in slices:
        grouped.setdefault(s.topic, {})[str(s.partition)] = end(s)
    return grouped
