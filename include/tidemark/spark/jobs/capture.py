"""Spark's part of a capture: the Kafka records of one binding become staged files; messages are audited.

Spark reads the bound offsets, one task per Kafka partition, adds ids and writes one file each into a staging
area. Nothing is shuffled, and no message passes through Python. ``log/capture.py`` decides the order of the
steps and adopts the files.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.connections import KafkaConnection
from tidemark.errors import with_fields
from tidemark.log.audit import audit_files, judge, spark_batch
from tidemark.log.errors import LogError
from tidemark.log.expectations import Suite
from tidemark.log.files.parquet import LOG_SCHEMA, ROWS_PER_GROUP, LogFolder
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.spark.jobs.read_log import read_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP_BYTES = 32 * 1024 * 1024
"""Small enough for every executor: short of memory, Parquet would write smaller groups, hence other bytes."""
SINGULAR = ("id", "write_time", "offset", "timestamp", "value")
"""Columns whose values rarely repeat: a dictionary costs more time than it saves."""
WRITE_OPTIONS = {
    "compression": "zstd",
    "parquet.block.size": str(GROUP_BYTES),
    "parquet.block.row.count.limit": str(ROWS_PER_GROUP),
    "parquet.statistics.truncate.length": "16",
    **{f"parquet.enable.dictionary#{name}": "false" for name in SINGULAR},
}


@with_fields
class AreaWritten(LogError):
    """The staging area of an attempt has files already: the engine was given the same capture twice."""

    t: int
    area: str

    text = (
        "The records of binding t = {t} are in {area} already: the Spark engine got this capture twice, as "
        "happens when it is restarted or the network fails. Nothing was taken from it or published. The next "
        "attempt writes into an area of its own."
    )


@dataclass(frozen=True)
class SparkCapture:
    """A ``CaptureEngine`` on Spark. The session is opened when it is first needed."""

    session: Callable[[], "SparkSession"]
    kafka: KafkaConnection
    isolation: str
    folder: LogFolder
    suite: Suite

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        """See ``CaptureEngine``."""
        return write_records(read_bound(self.session(), slices, self.kafka, self.isolation), binding, area)

    def audit(self, captured: Captured) -> list[Judgement]:
        """See ``CaptureEngine``: file statistics, then every message where the suite requires it."""
        pipeline = self.folder.pipeline
        found = audit_files(pipeline, list(captured.statistics), captured.rows_read, self.suite)
        if not self.suite.messages:
            return found
        paths = [self.folder.at(file) for file in captured.files]
        return [*found, *audit_messages(pipeline, self.session(), paths, self.suite)]


def read_bound(
    spark: "SparkSession", slices: Sequence[Slice], kafka: KafkaConnection, isolation: str
) -> "DataFrame":
    """Exactly the records of these slices."""
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
    """The log's columns from Kafka's: ids, the binding's time and write times are added."""
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


def write_records(records: "DataFrame", binding: Binding, area: str) -> int:
    """Write records with their ids into ``area``, one file per Kafka partition. Returns their number.

    ``area`` must not exist. A client that has lost its operation on a Connect server sends it again: then the
    second one is refused with ``AreaWritten``, and the next attempt takes another area.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    seen = Observation()
    read = records.observe(seen, count(lit(1)).alias("rows"))
    try:
        add_ids(read, binding).write.mode("error").options(**WRITE_OPTIONS).parquet(area)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise AreaWritten(binding.t, area) from None
    return int(seen.get["rows"])


def audit_messages(
    pipeline: str, spark: "SparkSession", paths: Sequence[str], suite: Suite
) -> list[Judgement]:
    """Judge every message by the pipeline's suite. A second pass, so only where it has such rules."""
    if not suite.messages or not paths:
        return []
    batch = spark_batch(read_parquet(spark, paths), "messages")
    return judge(pipeline, batch, [(one.notes or one.type, one) for one in suite.messages], ("id",))


def _per_topic(slices: Sequence[Slice], end: Callable[[Slice], int]) -> dict[str, dict[str, int]]:
    """One end of every slice by topic and partition, as Spark's offset options need it."""
    grouped: dict[str, dict[str, int]] = {}
    for s in slices:
        grouped.setdefault(s.topic, {})[str(s.partition)] = end(s)
    return grouped
