"""Kafka's part of a journal: one partition from an offset to a mark, for the actions of one entity.

Consumers belong to no group, commit nothing and are kept for the next read of their partition. One that
waits fetches nothing. What is fetched ahead is bounded, so a long tail passes through little memory.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from tidemark.client.errors import BadRecord, TailUnreadable
from tidemark.client.reader import OffsetGone
from tidemark.connections import KafkaConnection
from tidemark.journal.action import Action
from tidemark.journal.codec.json_text import storable
from tidemark.journal.codec.record import read_action, read_key
from tidemark.journal.errors import Undecodable
from tidemark.writers.kafka.target import Complaints

MESSAGES_AT_ONCE = 500
FETCHED_AHEAD = 1_024
"""Kilobytes: more is not quicker."""
FETCHED_AT_ONCE = 262_144
"""Bytes, as Kafka has them compressed."""
MOST_IDLE = 8
"""Consumers that are kept for later reads."""
_REPLACED = "\ufffd"


class KafkaTail:
    """The partitions of one topic."""

    def __init__(self, topic: str, connection: KafkaConnection, isolation: str, patience: float) -> None:
        self._topic, self._connection = topic, connection
        self._isolation, self._patience = isolation, patience
        self._complaints = Complaints()
        self._lock = threading.Lock()
        self._idle: dict[int, list[Consumer]] = {}
        self._is_closed = False

    def actions(self, key: str, partition: int, first: int, mark: int) -> Iterator[tuple[int, Action]]:
        """See ``Tail.actions``. The mark itself is read, so that the end is seen, whatever lies before it."""
        wanted = storable(key).encode()
        is_odd = _REPLACED in key
        for message in self._messages(key, partition, first, mark):
            found = message.key()
            if found != wanted and not (is_odd and found is not None and read_key(found) == key):
                continue
            kind, timestamp = message.timestamp()
            sent_at = None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp
            offset = message.offset() or 0
            try:
                action = read_action(found, message.value(), sent_at, kind, _headers(message))
            except Undecodable as error:
                raise BadRecord(self._topic, key, partition, offset, error.reason) from None
            if action is not None:
                yield offset, action

    def end(self, key: str, partition: int) -> int:
        """See ``Tail.end``."""
        place = TopicPartition(self._topic, partition)
        with self._consumer(partition) as consumer:
            try:
                found = consumer.get_watermark_offsets(place, timeout=self._patience)
            except KafkaException as error:
                raise self._unreadable(key, partition, 0, 0, self._complaints.about(error)) from error
            if found is None:
                raise self._unreadable(key, partition, 0, 0, self._silence())
            return int(found[1])

    def _messages(self, key: str, partition: int, first: int, mark: int) -> Iterator[Message]:
        with self._consumer(partition) as consumer:
            position = first
            try:
                consumer.assign([TopicPartition(self._topic, partition, first)])
                while position <= mark:
                    # The first one is waited for; what came with it is there already.
                    waited = consumer.poll(self._patience)
                    if waited is None:
                        raise self._unreadable(key, partition, position, mark, self._silence())
                    for message in (waited, *consumer.consume(MESSAGES_AT_ONCE, 0)):
                        if (error := message.error()) is not None:
                            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                                raise OffsetGone
                            raise KafkaException(error)
                        position = (message.offset() or 0) + 1
                        if position > mark:
                            return
                        yield message
            except KafkaException as error:
                reason = self._complaints.about(error)
                raise self._unreadable(key, partition, position, mark, reason) from error

    def _silence(self) -> str:
        why = "no answer" if self._isolation == "read_uncommitted" else "no answer, or an open transaction"
        return self._complaints.about(
            KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{why}, for {self._patience:g} s"))
        )

    def _unreadable(self, key: str, partition: int, offset: int, mark: int, reason: str) -> TailUnreadable:
        return TailUnreadable(self._topic, key, partition, offset, mark, reason)

    @contextmanager
    def _consumer(self, partition: int) -> Iterator[Consumer]:
        """A consumer for a while; reads of one partition at the same time have one each."""
        with self._lock:
            idle = self._idle.get(partition)
            consumer = idle.pop() if idle else None
        consumer = consumer or self._new_consumer()
        try:
            yield consumer
        except (GeneratorExit, OffsetGone, BadRecord):
            self._put_back(partition, consumer)
            raise
        except BaseException:
            consumer.close()
            raise
        self._put_back(partition, consumer)

    def _put_back(self, partition: int, consumer: Consumer) -> None:
        consumer.unassign()
        with self._lock:
            if not self._is_closed and sum(map(len, self._idle.values())) < MOST_IDLE:
                self._idle.setdefault(partition, []).append(consumer)
                return
        consumer.close()

    def _new_consumer(self) -> Consumer:
        return Consumer(
            {
                **self._connection.librdkafka_options(),
                "group.id": "tidemark-journal",  # has to be given; is never joined
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": self._isolation,
                "allow.auto.create.topics": False,
                # Somebody waits: what is there is to come at once.
                "fetch.wait.max.ms": 5,
                "fetch.queue.backoff.ms": 5,
                "queued.max.messages.kbytes": FETCHED_AHEAD,
                "fetch.message.max.bytes": FETCHED_AT_ONCE,
                "error_cb": self._complaints.note,
                "log_level": 0,  # what is worth knowing is in the errors that are raised
            }
        )

    def close(self) -> None:
        """Close the consumers that wait; those at work close when they are done."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, {}
        for consumers in idle.values():
            for consumer in consumers:
                consumer.close()


def _headers(message: Message) -> Sequence[tuple[str, bytes | None]]:
    return cast("Sequence[tuple[str, bytes | None]]", message.headers() or ())
