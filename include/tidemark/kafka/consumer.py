"""Reads partitions by offset, without a consumer group: nothing is joined, and nothing is committed.

A read ends at an offset that the caller names. Records that a consumer cannot see (transaction markers,
aborted records) are skipped.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, NamedTuple, Self, cast

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from tidemark.connections import KafkaConnection
from tidemark.kafka.librdkafka import Complaints, client_options, timed_out, translating

RECORDS_AT_ONCE = 500
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"

RecordHeaders = Sequence[tuple[str, bytes | None]]


class WhenGone(StrEnum):
    """What a read does where Kafka no longer has its first offset."""

    BEGIN_AT_EARLIEST = "earliest"
    REFUSE = "error"
    """Raises ``OffsetGone``."""


class RecordFields(NamedTuple):
    """The parts of a record, as the client gives them.

    Attributes:
        key: The record's key.
        value: The record's value.
        timestamp: In milliseconds; −1 where the record has none.
        timestamp_type: As ``ReadRecord.timestamp_type``.
        headers: In their order; None where there are none.
    """

    key: bytes | None
    value: bytes | None
    timestamp: int
    timestamp_type: int
    headers: RecordHeaders | None


NO_TIMESTAMP = -1


class ReadRecord:
    """A record that was read. Its parts are decoded on access.

    Most callers look for a few keys among many records and need no other part.
    """

    __slots__ = ("_message", "offset")

    def __init__(self, message: Message, offset: int) -> None:
        self._message, self.offset = message, offset

    @property
    def key(self) -> bytes | None:
        """The record's key."""
        return _bytes(self._message.key())

    @property
    def value(self) -> bytes | None:
        """The record's value."""
        return _bytes(self._message.value())

    @property
    def headers(self) -> RecordHeaders:
        """The record's headers, in their order."""
        return cast("RecordHeaders", self._message.headers() or ())

    @property
    def timestamp_type(self) -> int:
        """As Kafka numbers them: 0 for none, 1 for the producer's time, 2 for the broker's."""
        return int(self._message.timestamp()[0])

    @property
    def timestamp(self) -> int | None:
        """In milliseconds; None when the record has none."""
        kind, timestamp = self._message.timestamp()
        return None if kind == TIMESTAMP_NOT_AVAILABLE else int(timestamp)

    def fields(self) -> RecordFields:
        """All parts, for callers that need every one of them: quicker than one after the other."""
        message = self._message
        kind, timestamp = message.timestamp()
        stamp = NO_TIMESTAMP if kind == TIMESTAMP_NOT_AVAILABLE else timestamp
        headers = cast("RecordHeaders", message.headers()) or None
        return RecordFields(_bytes(message.key()), _bytes(message.value()), stamp, kind, headers)

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that the record was sent to; None where it is not known."""
        return self._message.leader_epoch()


class OffsetRange(NamedTuple):
    """Offsets of one partition, from ``first`` (included) to ``end`` (excluded)."""

    topic: str
    partition: int
    first: int
    end: int


class PartitionReader:
    """A consumer with manually assigned partitions. Not thread-safe."""

    def __init__(
        self,
        connection: KafkaConnection,
        group: str,
        patience: float,
        *,
        isolation: str = READ_COMMITTED,
        when_gone: WhenGone = WhenGone.REFUSE,
        fetched_ahead: int | None = None,
        fetched_at_once: int | None = None,
    ) -> None:
        """The connection is opened by the first request.

        ``group`` is required by the client; it appears in the brokers' logs and is never joined.
        ``patience`` is the timeout of a request in seconds. ``fetched_ahead`` (kilobytes) and
        ``fetched_at_once`` (bytes, compressed) bound the memory of long reads.
        """
        self._isolation, self._patience, self._complaints = isolation, patience, Complaints()
        options: dict[str, Any] = {
            **client_options(connection, self._complaints),
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": when_gone.value,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            # Brokers answer with what they have, without waiting for more records.
            "fetch.wait.max.ms": 5,
            "fetch.queue.backoff.ms": 5,
        }
        if fetched_ahead is not None:
            options["queued.max.messages.kbytes"] = fetched_ahead
        if fetched_at_once is not None:
            options["fetch.message.max.bytes"] = fetched_at_once
        with translating(self._complaints):
            self._consumer = Consumer(options)

    def partitions(self, topic: str) -> tuple[int, ...]:
        """The numbers of a topic's partitions; ``UnknownTopic`` where there is no such topic."""
        with self._translating():
            found = self._consumer.list_topics(topic, timeout=self._patience).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)
            return tuple(sorted(found.partitions))

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """The first and the next offset of a partition, as the reader's isolation level sees them."""
        with self._translating():
            place = TopicPartition(topic, partition)
            found = self._consumer.get_watermark_offsets(place, timeout=self._patience)
            if found is None:
                raise timed_out(f"no offsets: {self._silence}")
            return int(found[0]), int(found[1])

    def records(self, topic: str, partition: int, first: int, end: int) -> Iterator[ReadRecord]:
        """The records from offset ``first`` up to ``end``, which is not included."""
        if first < end:
            self.begin(topic, partition, first)
            yield from self.until(end)

    def begin(self, topic: str, partition: int, first: int) -> None:
        """Start to fetch from an offset on, without waiting for records."""
        with self._translating():
            self._consumer.assign([TopicPartition(topic, partition, first)])

    def until(self, end: int) -> Iterator[ReadRecord]:
        """The records from where ``begin`` was told to begin up to ``end``, which is not included."""
        with self._translating():
            while True:
                # Wait for the first record; the others of its batch are in memory by then.
                waited = self._consumer.poll(self._patience)
                if waited is None:
                    raise timed_out(self._silence)
                for message in (waited, *self._consumer.consume(RECORDS_AT_ONCE, 0)):
                    error, offset = message.error(), message.offset() or 0
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    # The event at the end of a partition has an offset too: the rest may be markers only.
                    if offset >= end:
                        return
                    if error is None:
                        yield ReadRecord(message, offset)
                        if offset == end - 1:
                            return

    def ranges(self, wanted: Sequence[OffsetRange]) -> Iterator[tuple[OffsetRange, ReadRecord]]:
        """The records of several ranges, each with its range; in order within a range."""
        left = {(one.topic, one.partition): one for one in wanted if one.first < one.end}
        if not left:
            return
        with self._translating():
            self._consumer.assign(
                [TopicPartition(one.topic, one.partition, one.first) for one in left.values()]
            )
            while left:
                waited = self._consumer.poll(self._patience)
                if waited is None:
                    raise timed_out(self._silence)
                for message in (waited, *self._consumer.consume(RECORDS_AT_ONCE, 0)):
                    error, offset = message.error(), message.offset() or 0
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    place = str(message.topic()), int(message.partition() or 0)
                    found = left.get(place)
                    if found is None:
                        continue
                    if error is None and offset < found.end:
                        yield found, ReadRecord(message, offset)
                    # The event at the end of a partition has an offset too: the rest may be markers only.
                    if offset >= found.end - (error is None):
                        del left[place]
            self._consumer.unassign()

    @property
    def _silence(self) -> str:
        is_stable = self._isolation == READ_UNCOMMITTED
        why = "no answer" if is_stable else "no answer, or an open transaction"
        return f"{why}, for {self._patience:g} s"

    def _translating(self) -> AbstractContextManager[None]:
        return translating(self._complaints, self._consumer.poll)

    def rest(self) -> None:
        """Stop fetching, and stay connected."""
        self._consumer.unassign()

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
