"""Reads the tails of Kafka's partitions: up to their ends for many threads, or on and on for one.

``KafkaTail`` has a pool of idle readers. One fetches nothing, and serves any partition next. Prefetching is
bounded, so a long tail needs little memory. ``TopicFollower`` waits for records that are not there yet, and
says how far it has come where a partition ends with records that no consumer sees.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tidemark.connections import KafkaConnection
from tidemark.kafka.consumer import (
    READ_COMMITTED,
    PartitionReader,
    ReadRecord,
    RecordHeaders,
    WhenGone,
)
from tidemark.kafka.errors import OffsetGone, UnknownTopic
from tidemark.kafka.librdkafka import Complaints, client_options, timed_out, translating

FETCHED_AHEAD = 1_024
"""Kilobytes that a reader prefetches; more is not faster."""
FETCHED_AT_ONCE = 262_144
"""Bytes of one fetch, compressed."""
MOST_IDLE = 8
"""Maximum of idle readers."""
FOLLOWED_AHEAD = 16_384
"""Kilobytes that a follower prefetches."""


class TailBegun:
    """A partition whose records arrive while its offsets are requested."""

    def __init__(self, reader: PartitionReader, topic: str, partition: int) -> None:
        self._reader, self._place = reader, (topic, partition)

    def offsets(self) -> tuple[int, int]:
        """The first and the next offset of the partition."""
        return self._reader.offsets(*self._place)

    def until(self, end: int) -> Iterator[ReadRecord]:
        """The records up to ``end``, not included, or ``OffsetGone``."""
        return self._reader.until(end)


class KafkaTail:
    """Tails of one cluster's partitions. Thread-safe: every read has its own reader."""

    def __init__(
        self,
        connection: KafkaConnection,
        group: str,
        patience: float,
        *,
        isolation: str,
        most_idle: int = MOST_IDLE,
    ) -> None:
        """See ``PartitionReader`` for the parameters; ``most_idle=0`` keeps no reader."""
        self._connection, self._group, self._patience = connection, group, patience
        self._isolation, self._most_idle = isolation, most_idle
        self._lock = threading.Lock()
        self._idle: list[tuple[tuple[str, int], PartitionReader]] = []
        """Readers, each with the partition that it has read last. The last one was used last."""
        self._is_closed = False

    def offsets(self, topic: str) -> dict[int, tuple[int, int]] | None:
        """First and next offset of every partition of a topic; None where the topic does not exist."""
        with self._reader(topic, 0) as reader:
            try:
                return {number: reader.offsets(topic, number) for number in reader.partitions(topic)}
            except UnknownTopic:
                return None

    def offsets_of(self, topic: str, partition: int) -> tuple[int, int]:
        """The first and the next offset of one partition."""
        with self._reader(topic, partition) as reader:
            return reader.offsets(topic, partition)

    def records(self, topic: str, partition: int, first: int, end: int) -> Iterator[ReadRecord]:
        """The records from offset ``first`` up to ``end``, not included, or ``OffsetGone``."""
        if first < end:
            with self._reader(topic, partition) as reader:
                yield from reader.records(topic, partition, first, end)

    @contextmanager
    def begun(self, topic: str, partition: int, first: int) -> Iterator["TailBegun"]:
        """A partition that is being fetched from an offset on, until the end of the block."""
        with self._reader(topic, partition) as reader:
            reader.begin(topic, partition, first)
            yield TailBegun(reader, topic, partition)

    @contextmanager
    def _reader(self, topic: str, partition: int) -> Iterator[PartitionReader]:
        """A reader until the end of the block. Concurrent reads of a partition get one each."""
        reader = self._taken((topic, partition)) or self._new_reader()
        try:
            yield reader
        except (GeneratorExit, OffsetGone):
            self._put_back(topic, partition, reader)
            raise
        except BaseException:
            reader.close()
            raise
        self._put_back(topic, partition, reader)

    def _taken(self, place: tuple[str, int]) -> PartitionReader | None:
        """An idle reader: of this partition, or else the one that has been idle longest."""
        with self._lock:
            if not self._idle:
                return None
            same = (number for number, (read, _) in enumerate(self._idle) if read == place)
            return self._idle.pop(next(same, 0))[1]

    def _put_back(self, topic: str, partition: int, reader: PartitionReader) -> None:
        reader.rest()
        with self._lock:
            if not self._is_closed and len(self._idle) < self._most_idle:
                self._idle.append(((topic, partition), reader))
                return
        reader.close()

    def _new_reader(self) -> PartitionReader:
        return PartitionReader(
            self._connection,
            self._group,
            self._patience,
            isolation=self._isolation,
            when_gone=WhenGone.REFUSE,
            fetched_ahead=FETCHED_AHEAD,
            fetched_at_once=FETCHED_AT_ONCE,
        )

    def close(self) -> None:
        """Close the idle readers; busy ones are closed at the end of their read."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for _, reader in idle:
            reader.close()


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
            "queued.max.messages.kbytes": FOLLOWED_AHEAD,
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
