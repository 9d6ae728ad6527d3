"""The topic as an agent's streams read it: its identity, its tail, and ranges of its records.

The protocols are what the streams need; ``KafkaTopic`` is Kafka's implementation. Everything blocks.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from tidemark.connections import KafkaConnection
from tidemark.kafka.consumer import OffsetRange, PartitionReader
from tidemark.kafka.errors import OffsetGone
from tidemark.kafka.tail import FETCHED_AHEAD, FETCHED_AT_ONCE, Followed, TopicFollower
from tidemark.kafka.topics import TopicQuestions
from tidemark.oplog.model.joining import WantedRange
from tidemark.oplog.model.judged_operations import LookBack, LookedBack, TopicRecord
from tidemark.oplog.model.resume_plan import KafkaOffsets

GROUP = "tidemark-oplog-agent"
"""Shown in the brokers' logs; never joined."""
PATIENCE = 10.0
"""The timeout of a request in seconds."""


class TopicTail(Protocol):
    """Follows all partitions; see ``kafka.tail.TopicFollower``."""

    def describe(self) -> tuple[str, int]:
        """The cluster's id and the number of partitions."""

    def offsets(self, partition: int) -> tuple[int, int]:
        """The first and the next offset of a partition."""

    def behind(self, partition: int, offset: int) -> int:
        """How far an offset is behind the partition's end."""

    def begin(self, starts: Sequence[int]) -> None:
        """Follow every partition from an offset on."""

    def next(self, most: int, wait: float) -> Followed:
        """What arrives within ``wait`` seconds."""

    def close(self) -> None:
        """Disconnect."""


class TopicRanges(Protocol):
    """Reads ranges. One thread at a time."""

    def offsets(self, partitions: int) -> Sequence[KafkaOffsets]:
        """What each partition has."""

    def records(self, ranges: Sequence[WantedRange]) -> Iterator[TopicRecord]:
        """The records of ranges, in order within each. Raises ``OffsetGone``."""

    def look_back(self, wanted: LookBack) -> LookedBack:
        """Earlier records; see ``LookingBack``. Raises ``OffsetGone``."""

    def rest(self) -> None:
        """Read nothing, and stay connected."""

    def close(self) -> None:
        """Disconnect."""


class TopicDoor(Protocol):
    """One topic."""

    def topic_id(self) -> str:
        """Kafka's id of the topic that has the name now. Raises ``UnknownTopic``."""

    def tail(self) -> TopicTail:
        """A new consumer of the tail."""

    def ranges(self) -> TopicRanges:
        """A new reader of ranges."""


class KafkaTopic:
    """``TopicDoor`` of a topic in Kafka."""

    def __init__(self, connection: KafkaConnection, topic: str) -> None:
        """Connects on first use."""
        self._connection, self._topic = connection, topic
        self._questions: TopicQuestions | None = None

    def topic_id(self) -> str:
        """See ``TopicDoor.topic_id``; empty where the brokers have no ids."""
        if self._questions is None:
            self._questions = TopicQuestions(self._connection, PATIENCE)
        return str(self._questions.describe(self._topic).id or "")

    def tail(self) -> TopicTail:
        """See ``TopicDoor.tail``."""
        return TopicFollower(self._connection, self._topic, GROUP, PATIENCE)

    def ranges(self) -> TopicRanges:
        """See ``TopicDoor.ranges``."""
        return KafkaRanges(self._connection, self._topic)


class KafkaRanges:
    """``TopicRanges`` in Kafka."""

    def __init__(self, connection: KafkaConnection, topic: str) -> None:
        """Connects on first use. What it prefetches is bounded."""
        self._topic = topic
        self._reader = PartitionReader(
            connection, GROUP, PATIENCE, fetched_ahead=FETCHED_AHEAD, fetched_at_once=FETCHED_AT_ONCE
        )

    def offsets(self, partitions: int) -> Sequence[KafkaOffsets]:
        """See ``TopicRanges.offsets``."""
        return [KafkaOffsets(*self._reader.offsets(self._topic, number)) for number in range(partitions)]

    def records(self, ranges: Sequence[WantedRange]) -> Iterator[TopicRecord]:
        """See ``TopicRanges.records``."""
        wanted = [OffsetRange(self._topic, one.partition, one.first, one.end) for one in ranges]
        for place, record in self._reader.ranges(wanted):
            yield TopicRecord(place.partition, record.offset, record.key, record.value, record.headers)

    def look_back(self, wanted: LookBack) -> LookedBack:
        """See ``TopicRanges.look_back``."""
        earliest, _ = self._reader.offsets(self._topic, wanted.partition)
        if earliest > wanted.needed:
            raise OffsetGone(f"{self._topic}/{wanted.partition} begins at {earliest}, not at {wanted.needed}")
        first = max(wanted.first, earliest)
        found = self.records([WantedRange(wanted.partition, first, wanted.end)])
        return LookedBack.of(first, found)

    def rest(self) -> None:
        """See ``TopicRanges.rest``."""
        self._reader.rest()

    def close(self) -> None:
        """See ``TopicRanges.close``."""
        self._reader.close()
