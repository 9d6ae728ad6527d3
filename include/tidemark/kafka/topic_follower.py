"""Follows a topic from given offsets on, without end: what agents of streams read.

Unlike ``PartitionReader``, which reads up to an offset, it waits for records that are not there yet, and says
how far it has come where a partition ends with records that no consumer sees.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tidemark.connections import KafkaConnection
from tidemark.kafka.consumer import READ_COMMITTED, RecordHeaders, WhenGone
from tidemark.kafka.librdkafka import Complaints, client_options, timed_out, translating

FETCHED_AHEAD = 16_384
"""Kilobytes that it prefetches."""


class FollowedRecord(NamedTuple):
    """A record as its topic has it, without its timestamp."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders | None


class Followed(NamedTuple):
    """What arrived.

    Attributes:
        records: The records, in order within each partition.
        ends: The next offset of each partition that was read to its end.
    """

    records: Sequence[FollowedRecord]
    ends: Mapping[int, int]


class TopicFollower:
    """A consumer with all partitions of a topic assigned. Not thread-safe."""

    def __init__(
        self,
        connection: KafkaConnection,
        topic: str,
        group: str,
        patience: float,
        consumer: Callable[[dict[str, Any]], Any] = Consumer,
    ) -> None:
        """The connection is opened by the first request.

        Args:
            connection: The cluster.
            topic: The topic.
            group: The name that brokers' logs show; it is never joined.
            patience: The timeout of a request in seconds.
            consumer: Makes the client.
        """
        self._topic, self._patience, self._complaints = topic, patience, Complaints()
        options: dict[str, Any] = {
            **client_options(connection, self._complaints),
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": WhenGone.REFUSE.value,
            "isolation.level": READ_COMMITTED,
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 10,
            "queued.max.messages.kbytes": FETCHED_AHEAD,
        }
        with translating(self._complaints):
            self._consumer = consumer(options)

    def describe(self) -> tuple[str, int]:
        """The cluster's id, and how many partitions the topic has. ``UnknownTopic`` where there is none."""
        with self._translating():
            found = self._consumer.list_topics(self._topic, timeout=self._patience)
            topic = found.topics[self._topic]
            if topic.error is not None:
                raise KafkaException(topic.error)
            return str(found.cluster_id or ""), len(topic.partitions)

    def offsets(self, partition: int) -> tuple[int, int]:
        """The first and the next offset of a partition, without records of open transactions."""
        place = TopicPartition(self._topic, partition)
        with self._translating():
            found = self._consumer.get_watermark_offsets(place, timeout=self._patience)
            if found is None:
                raise timed_out("no offsets")
            return int(found[0]), int(found[1])

    def behind(self, partition: int, offset: int) -> int:
        """How far an offset is behind the partition's end, as the last answers of its broker tell."""
        found = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        return 0 if found is None else max(int(found[1]) - offset, 0)

    def begin(self, starts: Sequence[int]) -> None:
        """Follow every partition from an offset on; one that is gone is refused by ``next``."""
        with self._translating():
            self._consumer.assign(
                [TopicPartition(self._topic, number, first) for number, first in enumerate(starts)]
            )

    def next(self, most: int, wait: float) -> Followed:
        """What arrives within ``wait`` seconds, at most ``most`` records. Raises ``OffsetGone``.

        It always waits so long for fewer: one hand-over of a batch costs less than one for each record.
        """
        records: list[FollowedRecord] = []
        ends: dict[int, int] = {}
        with self._translating():
            for message in self._consumer.consume(most, wait):
                error = message.error()
                if error is None:
                    records.append(_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    ends[cast("int", message.partition())] = cast("int", message.offset())
                else:
                    raise KafkaException(error)
        return Followed(records, ends)

    def _translating(self) -> AbstractContextManager[None]:
        return translating(self._complaints, self._consumer.poll)

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _record(message: Message) -> FollowedRecord:
    key, value = message.key(), message.value()
    return FollowedRecord(
        cast("int", message.partition()),
        cast("int", message.offset()),
        key.encode() if isinstance(key, str) else key,
        value.encode() if isinstance(value, str) else value,
        cast("RecordHeaders | None", message.headers()),
    )
