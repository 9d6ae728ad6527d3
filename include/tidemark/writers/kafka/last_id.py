"""The last id that one writer has put into one partition of its topic.

The search goes backwards from the partition's end in growing windows, past transaction markers, aborted
records and messages of other producers. Usually the first window has it. Where other producers have written
much since, that much is read; where this writer never wrote, the whole partition. The search waits until
every transaction is over that was open at the beginning: behind an open one, committed messages are not
visible.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.kafka.consumer import READ_UNCOMMITTED, PartitionReader, ReadRecord
from tidemark.log.model.binding import NOTHING_YET
from tidemark.writers.kafka.target import ANSWERS_WITHIN, TargetFailed, TargetTopic, reading

ID_HEADER = "tidemark-id"
WRITER_HEADER = "tidemark-writer"

OTHERS_END_WITHIN = ANSWERS_WITHIN
"""Seconds to wait for open transactions of other producers."""
FIRST_WINDOW = 16
GROWTH = 8
WHAT = "could not be read"


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The end of one partition.

    Attributes:
        ids: This writer's ids, in the order of their offsets.
        begins_at: The first offset that the partition still has.
        is_whole: Whether the partition was read from there on.
    """

    ids: tuple[int, ...]
    begins_at: int
    is_whole: bool

    @property
    def is_emptied(self) -> bool:
        """Whether all messages were removed by retention, so that the past contents are unknown."""
        return not self.ids and self.is_whole and self.begins_at > 0

    @property
    def last_id(self) -> int:
        """The last id of this writer; −1 when there is none."""
        return max(self.ids, default=NOTHING_YET)


def read_tail(
    target: TargetTopic, partition: int, most: int | None, others_end_within: float = OTHERS_END_WITHIN
) -> PartitionEnd:
    """This writer's ids among the last ``most`` offsets of a partition; None for all offsets.

    Where there is none among them, the last id that is further back.
    """
    end = end_of(target, partition)
    with reading(target, WHAT) as reader:
        begin = _wait_for_others(target, reader, partition, end, others_end_within)
        lower = begin if most is None else max(begin, end - most)
        ids = tuple(_ids(target, reader, partition, lower, end))
    if ids or lower == begin:
        return PartitionEnd(ids, begin, lower == begin)
    last_id = find_last_id(target, partition, others_end_within)
    return PartitionEnd((last_id,) if last_id != NOTHING_YET else (), begin, last_id == NOTHING_YET)


def find_last_id(target: TargetTopic, partition: int, others_end_within: float = OTHERS_END_WITHIN) -> int:
    """The last committed id of this writer; −1 when there is none."""
    end = end_of(target, partition)
    with reading(target, WHAT) as reader:
        begin = _wait_for_others(target, reader, partition, end, others_end_within)
        upper, window = end, FIRST_WINDOW
        while upper > begin:
            lower = max(begin, upper - window)
            # The ids of this writer only grow within a partition.
            if ids := [*_ids(target, reader, partition, lower, upper)]:
                return max(ids)
            upper, window = lower, window * GROWTH
    return NOTHING_YET


def end_of(target: TargetTopic, partition: int) -> int:
    """The offset after the last record of a partition, including those of open transactions."""
    with reading(target, WHAT, READ_UNCOMMITTED) as reader:
        return reader.offsets(target.topic, partition)[1]


def _wait_for_others(
    target: TargetTopic, reader: PartitionReader, partition: int, end: int, seconds: float
) -> int:
    """The partition's first offset, once everything below ``end`` is committed or aborted."""
    deadline = time.monotonic() + seconds
    while True:
        begin, stable = reader.offsets(target.topic, partition)
        if stable >= end:
            return begin
        if time.monotonic() > deadline:
            raise TargetFailed(
                target,
                f"cannot be written to in partition {partition}",
                f"another producer's transaction is open from offset {stable} on and did not end within "
                f"{seconds:.0f} s, so it is not known which messages are there",
            )
        time.sleep(0.1)


def _ids(
    target: TargetTopic, reader: PartitionReader, partition: int, lower: int, upper: int
) -> Iterator[int]:
    """This writer's ids among these offsets."""
    for record in reader.records(target.topic, partition, lower, upper):
        id_ = id_of(record, target.origin)
        if id_ is not None:
            yield id_


def id_of(record: ReadRecord, origin: str) -> int | None:
    """The id of a message that this writer sent; None for any other message.

    A message that passed another writer before also has its headers: the last ones count.
    """
    headers = dict(record.headers)
    writer, id_ = headers.get(WRITER_HEADER), headers.get(ID_HEADER)
    if writer != origin.encode() or not isinstance(id_, bytes) or not id_.isdigit():
        return None
    return int(id_)
