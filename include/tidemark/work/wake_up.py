"""Waking those who wait: a message in Kafka says that something was inserted. It is a hint and nothing more.

A message that is lost, late or for nothing costs time or a look, never an entry: whoever waits looks at the
journal again after a while in any case. Nothing is acknowledged, committed or sent a second time.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tidemark.connections import KafkaConnection

AT_ONCE = b"insert"
PATIENCE = 5.0
_LOG = logging.getLogger(__name__)


class Bell(Protocol):
    """What wakes, and what waits."""

    def ring(self, key: str) -> None:
        """Say that there is something new."""

    def listen(self, seconds: float) -> bool:
        """Hear everything that is said from now on; True if that begins now. Takes so long at most."""

    def wait(self, seconds: float) -> bool:
        """Wait for that; False if it did not come."""

    def close(self) -> None:
        """Stop."""


class KafkaBell:
    """A topic; everybody who waits reads it from where it ends."""

    def __init__(
        self,
        journal: str,
        topic: str,
        connection: KafkaConnection,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._journal, self._topic, self._connection = journal, topic, connection
        self._clock, self._sleep = clock, sleep
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None

    def ring(self, key: str) -> None:
        """See ``Bell.ring``."""
        try:
            if self._producer is None:
                options = {"linger.ms": 5, "log_level": 0, "queue.buffering.max.messages": 10_000}
                self._producer = Producer({**self._connection.librdkafka_options(), **options})
            self._producer.produce(self._topic, value=AT_ONCE, key=self._journal.encode())
        except (BufferError, KafkaException) as error:
            _LOG.warning("%s: nobody was woken up over %s (%s)", self._journal, self._topic, error)
        if self._producer is not None:
            self._producer.poll(0)

    def listen(self, seconds: float) -> bool:
        """See ``Bell.listen``; without Kafka nothing is heard, and ``wait`` says so."""
        if self._consumer is not None:
            return False
        try:
            self._consumer = self._listening(min(seconds, PATIENCE))
        except KafkaException:
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """See ``Bell.wait``; without Kafka the time passes, and whoever waits looks then."""
        until = self._clock() + seconds
        try:
            if self._consumer is None:
                self._consumer = self._listening(min(seconds, PATIENCE))
            message = self._consumer.poll(max(0.0, until - self._clock()))
            if message is None or message.error() is None:
                return message is not None
            problem: object = message.error()
        except KafkaException as error:
            problem = error
        _LOG.warning("%s: nobody is woken up over %s (%s)", self._journal, self._topic, problem)
        self._sleep(max(0.0, until - self._clock()))
        return False

    def _listening(self, patience: float) -> Consumer:
        consumer = Consumer(
            {
                **self._connection.librdkafka_options(),
                "group.id": f"tidemark-work-{self._journal}",  # demanded, but never joined
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        try:
            partitions = consumer.list_topics(self._topic, timeout=patience).topics[self._topic].partitions
            ends = []
            for number in partitions:
                place = TopicPartition(self._topic, number)
                place.offset = consumer.get_watermark_offsets(place, timeout=patience)[1]
                ends.append(place)
            consumer.assign(ends)
        except KafkaException:
            consumer.close()
            raise
        return consumer

    def close(self) -> None:
        """See ``Bell.close``."""
        if self._producer is not None:
            self._producer.flush(PATIENCE)
        if self._consumer is not None:
            self._consumer.close()
