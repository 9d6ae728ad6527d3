"""Spark's part of a capture: the Kafka records of one binding become staged files; messages are audited.

A binding's slices are dealt to tasks, which read Kafka and write one file a slice into a staging area, with
the code that captures small bindings in a process (``log/kafka_records.py``). ``log/capture.py`` decides the
order of the steps and adopts the files.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tidemark.connections import KafkaConnection
from tidemark.log.audit import audit_files, judge, spark_batch
from tidemark.log.expectations import Suite
from tidemark.log.files.parquet import LogFolder
from tidemark.log.kafka_records import RecordReader
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Binding, CapturePlace, Slice
from tidemark.log.model.captured import Captured
from tidemark.spark.jobs.read_log import read_parquet
from tidemark.spark.jobs.tasks import call_in_tasks, tagged, task_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SliceReader(Protocol):
    """Reads the records of slices and writes them into a staging area: a ``RecordReader``."""

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        """See ``CaptureEngine.write_records``."""

    def close(self) -> None:
        """Disconnect."""


@dataclass(frozen=True)
class SparkCapture:
    """A ``CaptureEngine`` on Spark. The session is opened when it is first needed."""

    session: Callable[[], "SparkSession"]
    kafka: KafkaConnection
    isolation: str
    folder: LogFolder
    suite: Suite
    reader: RecordReader | None = None
    """Reads small bindings; None for one that connects when it is needed."""

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        """See ``CaptureEngine``: in Spark's tasks, unless the binding says that this process captures it."""
        connect = partial(RecordReader, self.kafka, self.isolation)
        if binding.captured_by is not CapturePlace.PROCESS:
            return write_in_tasks(self.session(), connect, binding, slices, area)
        if self.reader is not None:
            return self.reader.write_records(binding, slices, area)
        with closing(connect()) as reader:
            return reader.write_records(binding, slices, area)

    def audit(self, captured: Captured) -> list[Judgement]:
        """See ``CaptureEngine``: file statistics, then every message where the suite requires it."""
        pipeline = self.folder.pipeline
        found = audit_files(pipeline, list(captured.statistics), captured.rows_read, self.suite)
        if not self.suite.messages:
            return found
        paths = [self.folder.at(file) for file in captured.files]
        return [*found, *audit_messages(pipeline, self.session(), paths, self.suite)]


@dataclass(frozen=True)
class ShareCapture:
    """Captures some slices of a binding in a task."""

    connect: Callable[[], SliceReader]
    binding: Binding
    area: str

    def __call__(self, share: Sequence[Slice]) -> int:
        """Write their records; returns their number."""
        with closing(self.connect()) as reader:
            return reader.write_records(self.binding, share, self.area)


def write_in_tasks(
    spark: "SparkSession",
    connect: Callable[[], SliceReader],
    binding: Binding,
    slices: Sequence[Slice],
    area: str,
) -> int:
    """Write the records of a binding's slices into ``area`` in Spark's tasks; returns their number."""
    with tagged(spark, f"tidemark/capture/{binding.run_id}"):
        work = ShareCapture(connect, binding, area)
        return sum(call_in_tasks(spark, work, deal_slices(slices, task_count(spark))))


def deal_slices(slices: Sequence[Slice], shares: int) -> list[list[Slice]]:
    """The slices in at most so many shares of about the same number of offsets, each in the given order."""
    dealt: list[list[int]] = [[] for _ in range(min(shares, len(slices)))]
    widths = [0] * len(dealt)
    for place in sorted(range(len(slices)), key=lambda place: -slices[place].width):
        least = widths.index(min(widths))
        dealt[least].append(place)
        widths[least] += slices[place].width
    return [[slices[place] for place in sorted(share)] for share in dealt]


def audit_messages(
    pipeline: str, spark: "SparkSession", paths: Sequence[str], suite: Suite
) -> list[Judgement]:
    """Judge every message by the pipeline's suite. A second pass, so only where it has such rules."""
    if not suite.messages or not paths:
        return []
    batch = spark_batch(read_parquet(spark, paths), "messages")
    return judge(pipeline, batch, [(one.notes or one.type, one) for one in suite.messages], ("id",))
