"""The hub's work in its thread: reads the tail of the topic, judges operations and encodes them. Blocks.

One hub follows one topic under one topic id. Where the topic is re-created, or what it needs is gone, its
life ends, and the next one begins anew.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tidemark.errors import TidemarkError
from tidemark.kafka.errors import OffsetGone
from tidemark.oplog.agent.streams.errors import PartitionsMissing
from tidemark.oplog.agent.streams.settings import StreamSettings
from tidemark.oplog.agent.streams.sources.logged_topic import LoggedTopic
from tidemark.oplog.agent.streams.sources.topic_door import TopicDoor, TopicTail
from tidemark.oplog.model.judged_operations import JudgedOperations, LookBack, LookedBack, TopicRecord
from tidemark.oplog.model.ring import RingEvent
from tidemark.oplog.model.server_sent_events import OperationData
from tidemark.oplog.model.vector import MovingVector, Vector, covers

AT_ONCE = 500
WAIT = 0.05
LOOKED_AT_EVERY = 5.0
"""Seconds between two looks at the topic's id."""


class TopicReplaced(TidemarkError):
    """The topic was created again, or got further partitions, while it was followed."""


@dataclass(frozen=True, slots=True)
class FollowedTopic:
    """The topic as a hub has found it.

    Attributes:
        cluster_id: Kafka's id of the cluster.
        topic_id: Kafka's id of the topic.
        starts: Where the hub begins to read: a little before the end, so that clients that come back do not
            need a reader.
        ends: Where the topic ended then: from there on the hub is live.
    """

    cluster_id: str
    topic_id: str
    starts: Vector
    ends: Vector

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return len(self.ends)


@dataclass(frozen=True, slots=True)
class HubBatch:
    """What a hub has read at once.

    Attributes:
        events: The valid operations.
        vector: What it has read by now.
        is_live: Whether it has reached the end that the topic had when it began.
        received: Records so far.
        void: Void corrections so far.
        bad: Records that are no operations so far.
        behind: How many offsets it is behind the end of the topic.
    """

    events: list[RingEvent]
    vector: Vector
    is_live: bool
    received: int
    void: int
    bad: int
    behind: int


def looking_back(door: TopicDoor, log: LoggedTopic | None) -> Callable[[LookBack], LookedBack]:
    """Looks back in Kafka, and in the commit log where Kafka has forgotten. Raises ``OffsetGone``."""

    def look_back(wanted: LookBack) -> LookedBack:
        ranges = door.ranges()
        try:
            return ranges.look_back(wanted)
        except OffsetGone:
            if log is None:
                raise
            return log.look_back(wanted)
        finally:
            ranges.close()

    return look_back


class HubReader:
    """See the module. Belongs to one thread at a time."""

    def __init__(self, settings: StreamSettings, door: TopicDoor) -> None:
        self._settings, self._door = settings, door
        self._log: LoggedTopic | None = None
        self._data = OperationData(settings.object_url)
        self._tail: TopicTail | None = None
        self._looked_at = 0.0
        self.unjudged: tuple[int, int] | None = None
        """Partition and offset of a correction that cannot be judged: what it depends on is gone."""

    def open(self, from_end: bool = False) -> FollowedTopic:
        """Look at the topic and begin to follow it.

        Args:
            from_end: Begin at its end, because something before it cannot be read.
        """
        self.close()
        try:
            return self._begin(from_end)
        except BaseException:
            self.close()
            raise

    def _begin(self, from_end: bool) -> FollowedTopic:
        tail = self._tail = self._door.tail()
        topic_id = self._door.topic_id()
        cluster_id, partitions = tail.describe()
        recorded = self._settings.partitions
        if recorded is not None and partitions < recorded:
            raise PartitionsMissing(self._settings.topic, recorded, partitions)
        found = [tail.offsets(number) for number in range(partitions)]
        ends = tuple(end for _, end in found)
        back = 0 if from_end else self._settings.ring_events // partitions
        starts = tuple(max(first, end - back) for first, end in found)
        self._topic = FollowedTopic(cluster_id, topic_id, starts, ends)
        self._judge = JudgedOperations(topic_id, lambda wanted: looking_back(self._door, self._log)(wanted))
        for number, first in enumerate(starts):
            self._judge.begin(number, first)
        self._vector, self._is_live, self.unjudged = MovingVector(starts), covers(starts, ends), None
        self._looked_at, self._behind = time.monotonic(), 0
        tail.begin(starts)
        return self._topic

    def use_log(self, log: LoggedTopic | None) -> None:
        """Look back in a log too, where Kafka has forgotten."""
        self._log = log

    def read(self) -> HubBatch | None:
        """What has arrived; None where nothing has.

        Raises:
            OffsetGone: The hub is behind what Kafka keeps.
            TopicReplaced: The topic is another one now.
            KafkaFailure: Kafka did not answer.
        """
        assert self._tail is not None
        followed = self._tail.next(AT_ONCE, WAIT)
        events, vector = [], self._vector
        for one in followed.records:
            record = TopicRecord(*one)
            partition, offset = record.partition, record.offset
            if offset < vector[partition]:
                continue  # read before the consumer connected again
            try:
                operation = self._judge.operation(record)
            except OffsetGone:
                self.unjudged = partition, offset
                raise
            vector.move(partition, offset + 1)
            if operation is not None:
                event = RingEvent(
                    partition,
                    offset,
                    str(operation.event),
                    operation.type,
                    operation.parents,
                    self._data.encode(operation),
                    vector.text,
                )
                events.append(event)
        for partition, end in followed.ends.items():
            vector.move(partition, end)
        self._look()
        if not followed.records and not followed.ends:
            return None
        now, counts = vector.offsets, self._judge.counts
        self._is_live = self._is_live or covers(now, self._topic.ends)
        return HubBatch(events, now, self._is_live, counts.received, counts.void, counts.bad, self._behind)

    def reconnect(self) -> None:
        """Continue with a new consumer where the last one failed."""
        self.close()
        tail = self._tail = self._door.tail()
        self._refuse_replaced()
        tail.begin(self._vector.offsets)

    def close(self) -> None:
        """Disconnect."""
        if self._tail is not None:
            self._tail.close()
            self._tail = None

    def _look(self) -> None:
        """Every few seconds: whether it is still this topic, and how far it is behind."""
        if time.monotonic() - self._looked_at < LOOKED_AT_EVERY:
            return
        self._looked_at = time.monotonic()
        self._refuse_replaced()
        assert self._tail is not None
        _, partitions = self._tail.describe()
        if partitions != self._topic.partitions:
            raise TopicReplaced(
                f"Topic {self._settings.topic} has {partitions} partitions now. All streams end; clients "
                "that come back go on exactly. Nothing has to be done."
            )
        offsets = self._vector.offsets
        self._behind = sum(self._tail.behind(number, at) for number, at in enumerate(offsets))

    def _refuse_replaced(self) -> None:
        if self._door.topic_id() != self._topic.topic_id:
            raise TopicReplaced(
                f"Topic {self._settings.topic} was deleted and created again. All streams end; clients that "
                "come back are sent all objects. Nothing has to be done."
            )
