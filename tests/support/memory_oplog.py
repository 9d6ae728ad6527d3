"""An oplog topic, its commit log and its collection in memory, as an agent's streams read them."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b

from tests.support.oplog_samples import TOPIC_ID, record

from tidemark.kafka.errors import KafkaFailure, OffsetGone
from tidemark.kafka.tail import Followed, FollowedRecord
from tidemark.operations.corrections import Correction
from tidemark.operations.operation import ObjectOperation
from tidemark.oplog.agent.streams.sources.logged_topic import MissedTimes
from tidemark.oplog.agent.streams.sources.object_store import ObjectName, TimeForgotten
from tidemark.oplog.model.images import ObjectRow
from tidemark.oplog.model.joining import WantedRange
from tidemark.oplog.model.judged_operations import JudgedOperations, LookBack, LookedBack, TopicRecord
from tidemark.oplog.model.resume_plan import KafkaOffsets, LoggedOffsets

PARTITIONS = 2


def token_of(type_: str, id_: str) -> int:
    """A token that does not follow the order of ids."""
    return int.from_bytes(blake2b(f"{type_}/{id_}".encode(), digest_size=8).digest(), "big", signed=True)


class MemoryTopic:
    """``TopicDoor``. Threads may share it."""

    def __init__(self, partitions: int = PARTITIONS) -> None:
        self.id = TOPIC_ID
        self.records: list[dict[int, TopicRecord]] = [{} for _ in range(partitions)]
        self.firsts, self.ends = [0] * partitions, [0] * partitions
        self.changed = threading.Condition()
        self.is_down = False
        self.read: list[WantedRange] = []
        """Ranges that readers were asked for."""
        self.open_readers = 0
        self.tails: list[MemoryTail] = []

    def topic_id(self) -> str:
        self.refuse_down()
        return self.id

    def tail(self) -> "MemoryTail":
        self.tails.append(MemoryTail(self))
        return self.tails[-1]

    def ranges(self) -> "MemoryRanges":
        self.open_readers += 1
        return MemoryRanges(self)

    def partition_of(self, operation: ObjectOperation) -> int:
        return operation.key[-1] % len(self.records)

    def send(self, operation: ObjectOperation, correction: Correction | None = None) -> tuple[int, int]:
        """Add an operation; its partition and offset."""
        partition = self.partition_of(operation)
        with self.changed:
            offset = self.ends[partition]
            self.records[partition][offset] = record(offset, operation, partition, correction)
            self.ends[partition] = offset + 1
            self.changed.notify_all()
        return partition, offset

    def add(self, found: TopicRecord) -> None:
        """Add a record as it is, at the end of its partition."""
        with self.changed:
            self.records[found.partition][self.ends[found.partition]] = found
            self.ends[found.partition] += 1
            self.changed.notify_all()

    def skip(self, partition: int, offsets: int = 1) -> None:
        """Add markers, or records of a transaction that was aborted."""
        with self.changed:
            self.ends[partition] += offsets
            self.changed.notify_all()

    def expire(self, partition: int, first: int) -> None:
        """Retention: nothing before ``first`` is left."""
        with self.changed:
            self.firsts[partition] = first
            for offset in [one for one in self.records[partition] if one < first]:
                del self.records[partition][offset]

    def recreate(self, id_: str) -> None:
        """Delete the topic and create it again."""
        with self.changed:
            self.id = id_
            for partition, found in enumerate(self.records):
                found.clear()
                self.firsts[partition] = self.ends[partition] = 0
            self.changed.notify_all()

    def add_partition(self) -> None:
        with self.changed:
            self.records.append({})
            self.firsts.append(0)
            self.ends.append(0)

    def refuse_down(self) -> None:
        if self.is_down:
            raise KafkaFailure("no broker answers")


class MemoryTail:
    """``TopicTail``."""

    def __init__(self, topic: MemoryTopic) -> None:
        topic.refuse_down()
        self._topic = topic
        self._at: list[int] = []
        self.is_closed = False
        self.is_held = False
        """Whether it gets nothing for now."""

    def describe(self) -> tuple[str, int]:
        self._topic.refuse_down()
        return "cluster", len(self._topic.records)

    def offsets(self, partition: int) -> tuple[int, int]:
        self._topic.refuse_down()
        return self._topic.firsts[partition], self._topic.ends[partition]

    def behind(self, partition: int, offset: int) -> int:
        return max(self._topic.ends[partition] - offset, 0)

    def begin(self, starts: Sequence[int]) -> None:
        self._at = list(starts)

    def next(self, most: int, wait: float) -> Followed:
        topic = self._topic
        with topic.changed:
            topic.changed.wait_for(lambda: self._has_more(), wait)
            topic.refuse_down()
            records, ends = [], {}
            if self.is_held:
                return Followed(records, ends)
            for partition, at in enumerate(self._at):
                if at < topic.firsts[partition]:
                    raise OffsetGone(f"{partition}: {at}")
                end = min(topic.ends[partition], at + most)
                found = topic.records[partition]
                records += [FollowedRecord(*found[one]) for one in range(at, end) if one in found]
                self._at[partition] = end
                if end == topic.ends[partition]:
                    ends[partition] = end
            return Followed(records, ends)

    def _has_more(self) -> bool:
        topic = self._topic
        return not self.is_held and (self._at != topic.ends or topic.is_down)

    def close(self) -> None:
        self.is_closed, self._at = True, []


class MemoryRanges:
    """``TopicRanges``."""

    def __init__(self, topic: MemoryTopic) -> None:
        self._topic, self._is_closed = topic, False

    def offsets(self, partitions: int) -> Sequence[KafkaOffsets]:
        topic = self._topic
        topic.refuse_down()
        return [KafkaOffsets(topic.firsts[number], topic.ends[number]) for number in range(partitions)]

    def records(self, ranges: Sequence[WantedRange]) -> Iterator[TopicRecord]:
        topic = self._topic
        topic.read += ranges
        for one in ranges:
            for offset in range(one.first, one.end):
                topic.refuse_down()
                if offset < topic.firsts[one.partition]:
                    raise OffsetGone(f"{one.partition}: {offset}")
                if found := topic.records[one.partition].get(offset):
                    yield found

    def look_back(self, wanted: LookBack) -> LookedBack:
        first = self._topic.firsts[wanted.partition]
        if first > wanted.needed:
            raise OffsetGone(f"{wanted.partition}: {wanted.needed}")
        first = max(first, wanted.first)
        found = self.records([WantedRange(wanted.partition, first, wanted.end)])
        return LookedBack.of(first, found)

    def rest(self) -> None:
        pass

    def close(self) -> None:
        if not self._is_closed:
            self._topic.open_readers -= 1
        self._is_closed = True


@dataclass
class MemoryLog:
    """``LoggedTopic``: what the pipeline has bound and captured, which retention does not touch."""

    topic: MemoryTopic
    bindings: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)
    """Time, and the offsets of each partition."""
    captured: list[dict[int, TopicRecord]] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Partition and offset of accepted losses."""
    is_compacted: bool = False

    def bind(self, t: int) -> None:
        """Bind and capture everything there is."""
        topic = self.topic
        self.captured = self.captured or [{} for _ in topic.records]
        lowers = [self._end(number) for number in range(len(topic.records))]
        slices = []
        for number, lower in enumerate(lowers):
            lower = max(lower, topic.firsts[number])
            slices.append((lower, topic.ends[number]))
            for offset in range(lower, topic.ends[number]):
                if found := topic.records[number].get(offset):
                    self.captured[number][offset] = found
        self.bindings.append((t, slices))

    def _end(self, number: int) -> int:
        return self.bindings[-1][1][number][1] if self.bindings else 0

    def offsets(self, starts: Mapping[int, int]) -> Mapping[int, LoggedOffsets]:
        found = {}
        for number, start in starts.items():
            ranges = [slices[number] for _, slices in self.bindings]
            is_lost = any(place == number and offset >= start for place, offset in self.lost)
            if ranges and ranges[0][0] <= start and not is_lost and not self.is_compacted:
                found[number] = LoggedOffsets(start, ranges[-1][1])
        return found

    @contextmanager
    def records(self, starts: Mapping[int, int]) -> Iterator[tuple[Iterator[TopicRecord], Mapping[int, int]]]:
        ends = {number: self._end(number) for number in starts}
        yield (
            (
                self.captured[number][offset]
                for number, start in starts.items()
                for offset in range(start, ends[number])
                if offset in self.captured[number]
            ),
            ends,
        )

    def look_back(self, wanted: LookBack) -> LookedBack:
        found = self.captured[wanted.partition] if self.captured else {}
        if self._end(wanted.partition) < wanted.end or self.is_compacted:
            raise OffsetGone(f"{wanted.partition}: {wanted.needed}")
        reach = range(wanted.first, wanted.end)
        return LookedBack.of(wanted.first, [found[at] for at in reach if at in found])

    def ends_at(self, t: int) -> Sequence[int | None]:
        found = [slices for bound, slices in self.bindings if bound <= t]
        return [end for _, end in found[-1]] if found else [None] * len(self.topic.records)

    def missed(self, beyond: Sequence[int | None]) -> MissedTimes:
        wanted = [(number, at) for number, at in enumerate(beyond) if at is not None]
        newest = self.bindings[-1][0] if self.bindings else 0
        firsts = [
            next((t for t, slices in self.bindings if slices[number][1] > at), newest + 1)
            for number, at in wanted
        ]
        return MissedTimes(min(firsts) - 1, max(firsts))


@dataclass
class MemoryObjects:
    """``ObjectStore``: the collection that the log's bindings give."""

    log: MemoryLog
    since: int = 0
    page: int = 2
    held: list[int] = field(default_factory=list)
    error: Exception | None = None
    asked_versions: list[Sequence[ObjectName]] = field(default_factory=list)

    def newest(self) -> int:
        self._refuse()
        return max((t for t, _ in self.log.bindings), default=0)

    @contextmanager
    def holding(self, t: int) -> Iterator[None]:
        self._refuse()
        if t < self.since:
            raise TimeForgotten(f"{t} is before {self.since}")
        self.held.append(t)
        try:
            yield
        finally:
            self.held.remove(t)

    def rows(self, t: int, token: int) -> Iterator[Sequence[ObjectRow]]:
        newest = {(row.operation.type, row.operation.id): row for row in self._all() if row.t <= t}
        ordered = sorted(newest.values(), key=lambda row: (row.token, row.operation.id))
        left = [row for row in ordered if row.token >= token]
        # Deletes that nothing as of `since` tells of are forgotten.
        left = [row for row in left if not (row.is_deleted and row.t <= self.since and self.since)]
        for first in range(0, len(left), self.page):
            self._refuse()
            yield left[first : first + self.page]

    def versions(
        self, objects: Sequence[ObjectName], before: int, until: int
    ) -> Mapping[ObjectName, Sequence[ObjectRow]]:
        self._refuse()
        self.asked_versions.append(objects)
        found: dict[ObjectName, list[ObjectRow]] = {name: [] for name in objects}
        for row in reversed(self._all()):
            name = row.operation.type, row.operation.id
            if name in found and row.t <= until and not (found[name] and found[name][-1].t <= before):
                found[name].append(row)
        return found

    def check(self) -> None:
        self._refuse()

    def _all(self) -> list[ObjectRow]:
        """The rows of all valid operations, oldest first."""
        judge = JudgedOperations(self.log.topic.id, self.log.look_back)
        found = []
        for t, slices in self.log.bindings:
            for number, (lower, upper) in enumerate(slices):
                for offset in range(lower, upper):
                    captured = self.log.captured[number].get(offset)
                    operation = judge.operation(captured) if captured else None
                    if operation is not None:
                        token = token_of(operation.type, operation.id)
                        found.append(ObjectRow(token, operation, t, number, offset))
        return found

    def _refuse(self) -> None:
        if self.error is not None:
            raise self.error
