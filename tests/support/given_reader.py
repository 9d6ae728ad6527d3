"""A reader of Kafka records without Kafka, and a capture with it: in Spark's tasks or in this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.fake_kafka import message

from tidemark.faults import FaultPoint, reach
from tidemark.kafka.consumer import ReadRecord
from tidemark.kafka.errors import KafkaFailure
from tidemark.log.kafka_records import write_slices
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Records = Mapping[tuple[str, int], Mapping[int, bytes | None]]
"""Values by partition and offset."""


@dataclass(frozen=True)
class GivenReader:
    """Reads these records; a partition that it does not have is one that does not answer."""

    records: Records
    point: FaultPoint | None = None
    """Reached after each slice."""

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        return write_slices(binding, slices, area, self._read(slices))

    def _read(self, slices: Sequence[Slice]) -> Iterator[tuple[Slice, ReadRecord]]:
        for slice_ in slices:
            place = slice_.topic, slice_.partition
            if place not in self.records:
                raise KafkaFailure(f"{slice_.topic}/{slice_.partition} does not answer")
            for offset, value in self.records[place].items():
                headers: Any = [("trace", b"\x01")] if offset % 2 else None
                yield slice_, ReadRecord(message(offset, value=value, headers=headers), offset)
            if self.point is not None:
                reach(self.point)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class GivenCapture:
    """The engine of a capture whose records do not come from Kafka."""

    spark: "SparkSession | None"
    """None: in this process."""
    connect: Callable[[], GivenReader]

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        from tidemark.spark.jobs.capture import write_in_tasks

        if self.spark is None:
            return self.connect().write_records(binding, slices, area)
        return write_in_tasks(self.spark, self.connect, binding, slices, area)

    def audit(self, captured: Captured) -> Sequence[Judgement]:
        return ()
