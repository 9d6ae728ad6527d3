"""Kafka records of one binding as rows of the commit log.

Spark reads exactly the bound offsets, one task per Kafka partition; each task adds ids and writes its own
file. Nothing is shuffled, nothing is counted, nothing is visible to a reader.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.connections import KafkaConnection
from tidemark.log.binding import Binding, Slice
from tidemark.log.errors import RecordsMissing
from tidemark.log.files import LOG_SCHEMA, LogFolder
from tidemark.log.manifest import LogFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("t", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first_id", pa.int64()),
        ("last_id", pa.int64()),
        ("count", pa.int64()),
        ("bytes", pa.int64()),
        ("digest", pa.string()),
    ]
)
"""What a task answers with: the fields of ``LogFile``."""


def read_bound(
    spark: "SparkSession", binding: Binding, kafka: KafkaConnection, isolation: str
) -> "DataFrame":
    """The records of a binding, no more and no less."""
    lowers = _per_topic(binding, lambda s: s.lower)
    options = {
        **kafka.spark_options(),
        "kafka.isolation.level": isolation,
        "assign": json.dumps({topic: [int(p) for p in ends] for topic, ends in lowers.items()}),
        "startingOffsets": json.dumps(lowers),
        "endingOffsets": json.dumps(_per_topic(binding, lambda s: s.upper)),
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


def add_ids(batch: pa.RecordBatch, binding: Binding) -> pa.RecordBatch:
    """Kafka's columns → the log's columns, for records of one Kafka partition."""
    topic, partition = batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()
    ids = pc.add(batch.column("offset"), binding.shifts[topic, partition])
    columns = {
        **{name: batch.column(name) for name in batch.schema.names},
        "id": ids,
        "t": pa.repeat(pa.scalar(binding.t, pa.int64()), batch.num_rows),
        "write_time": pc.add(ids, binding.t - binding.base),
        "namespace": batch.column("topic"),
    }
    return pa.RecordBatch.from_arrays(
        [columns[field.name].cast(field.type) for field in LOG_SCHEMA], schema=LOG_SCHEMA
    )


def write_files(records: "DataFrame", binding: Binding, pipeline: str, root: str) -> list[LogFile]:
    """Write one file per Kafka partition; what was written, in id order."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        folder = LogFolder(pipeline, root)
        slices = {(s.topic, s.partition): s for s in binding.slices}
        pending = (batch for batch in batches if batch.num_rows)
        first = next(pending, None)
        if first is None:
            return
        slice_ = slices[first.column("topic")[0].as_py(), first.column("partition")[0].as_py()]

        def rows() -> Iterator[pa.RecordBatch]:
            yield add_ids(first, binding)
            for batch in pending:
                yield add_ids(batch, binding)

        file = folder.write_file(binding, slice_, rows())
        if file is not None:
            yield pa.RecordBatch.from_pylist([asdict(file)], FILE_SCHEMA)

    rows = records.mapInArrow(write, from_arrow_schema(FILE_SCHEMA)).collect()
    found = [LogFile(**row.asDict()) for row in rows]
    check_ranges(found, binding, pipeline)
    return sorted(found, key=lambda file: file.first_id)


def check_ranges(files: list[LogFile], binding: Binding, pipeline: str) -> None:
    """Refuse a capture that holds a message the binding does not own, or splits a slice over two files."""
    by_place = {(file.topic, file.partition): file for file in files}
    for s in binding.slices:
        file = by_place.pop((s.topic, s.partition), None)
        if file is None:
            continue
        first, last = (
            binding.id_of(s.topic, s.partition, s.lower),
            binding.id_of(s.topic, s.partition, s.upper - 1),
        )
        if not first <= file.first_id <= file.last_id <= last or file.count > s.width:
            found = f"capture found ids {file.first_id} to {file.last_id} ({file.count} records)"
            raise RecordsMissing(pipeline, s.topic, s.partition, s.lower, s.upper, found)
    if by_place or len(files) != len({file.path for file in files}):
        raise RecordsMissing(
            pipeline, "?", -1, 0, 0, f"capture gave files of other partitions: {sorted(by_place)}"
        )


def _per_topic(binding: Binding, end: Callable[[Slice], int]) -> dict[str, dict[str, int]]:
    """One end of every slice, in the form of Spark's offset options."""
    grouped: dict[str, dict[str, int]] = {}
    for s in binding.slices:
        grouped.setdefault(s.topic, {})[str(s.partition)] = end(s)
    return grouped
