"""Kafka records of one binding as rows of the commit log.

Spark reads exactly the bound offsets, one task per Kafka partition; each task adds ids and writes its own
file. Nothing is shuffled, nothing is counted, nothing is visible to a reader.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.connections import KafkaConnection
from tidemark.log.audit import Judgement, judge, spark_batch
from tidemark.log.binding import Binding, Slice
from tidemark.log.captured import Captured
from tidemark.log.errors import RecordsMissing
from tidemark.log.files import LOG_SCHEMA, LogFolder
from tidemark.log.manifest import LogFile
from tidemark.log.suite import Suite
from tidemark.spark.log import read_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_PARTITIONS = 1_000_000
"""More partitions than a topic can have."""


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


def with_place(batch: pa.RecordBatch, number: int, slice_: Slice) -> pa.RecordBatch:
    """The records of one task, all of this place, with their topic and partition again."""
    if pc.min_max(batch.column("place")).as_py() != {"min": number, "max": number}:
        # Ids would be those of the first record's partition.
        raise ValueError(f"{slice_.topic}/{slice_.partition}: one task was given records of two partitions")
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["topic"] = pa.repeat(slice_.topic, batch.num_rows)
    columns["partition"] = pa.repeat(pa.scalar(slice_.partition, pa.int32()), batch.num_rows)
    return pa.RecordBatch.from_pydict(columns)


def write_files(
    records: "DataFrame",
    binding: Binding,
    slices: Sequence[Slice],
    pipeline: str,
    root: str,
    is_declared: Callable[[str], bool] = lambda namespace: True,
) -> Captured:
    """Write one file per Kafka partition; what was written, in id order."""
    # The way from Java to Python is what a capture spends its time on: a number travels for the two columns
    # that are the same for every record of a task.
    topics = sorted({s.topic for s in slices})
    numbers = " ".join(f"WHEN '{topic}' THEN {number}" for number, topic in enumerate(topics))
    place = f"CASE topic {numbers} END * {MOST_PARTITIONS} + partition AS place"
    by_place = {topics.index(s.topic) * MOST_PARTITIONS + s.partition: s for s in slices}

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pending = (batch for batch in batches if batch.num_rows)
        first = next(pending, None)
        if first is None:
            return
        number = first.column("place")[0].as_py()
        slice_ = by_place[number]
        rows = (add_ids(with_place(batch, number, slice_), binding) for batch in chain([first], pending))
        file = LogFolder(pipeline, root).write_file(binding, slice_, rows, is_declared)
        if file is not None:
            answer = Captured(binding.t, (file,)).to_bytes().decode()
            yield pa.RecordBatch.from_pydict({"captured": [answer]})

    columns = [name for name in records.columns if name not in ("topic", "partition")]
    answers = records.selectExpr(place, *columns).mapInArrow(write, "captured string").collect()
    found = [file for row in answers for file in Captured.from_bytes(row.captured).captured_files]
    captured = Captured(binding.t, tuple(sorted(found, key=lambda one: one.file.first_id)))
    check_files(captured.files, slices, pipeline)
    return captured


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
