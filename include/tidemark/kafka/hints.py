"""Hints: messages that announce something new and may be lost, because nothing depends on their arrival.

Nothing is acknowledged, committed or retried. A listener receives the hints that are sent after it started.
"""

from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tidemark.connections import KafkaConnection
from tidemark.kafka.errors import KafkaFailure
from tidemark.kafka.librdkafka import Complaints, client_options, translating

FLUSHED_WITHIN = 5.0
_SENDING: dict[str, Any] = {"linger.ms": 5, "queue.buffering.max.messages": 10_000}


class HintSender:
    """Sends hints to one topic."""

    def __init__(self, connection: KafkaConnection, topic: str) -> None:
        self._topic, self._complaints = topic, Complaints()
        with translating(self._complaints):
            self._producer = Producer({**client_options(connection, self._complaints), **_SENDING})

    def send(self, key: bytes, value: bytes) -> None:
        """Queue a hint in the client. Raises ``KafkaFailure`` where its queue is full."""
        try:
            with translating(self._complaints):
                self._producer.produce(self._topic, value=value, key=key)
        finally:
            self._producer.poll(0)

    def close(self) -> None:
        """Wait a moment for queued hints, then disconnect."""
        self._producer.flush(FLUSHED_WITHIN)


class HintListener:
    """Receives every hint that is sent to a topic after its creation."""

    def __init__(self, connection: KafkaConnection, topic: str, group: str, patience: float) -> None:
        """Find the end of the topic. ``patience`` is the timeout of each request in seconds."""
        self._complaints = Complaints()
        options = {
            **client_options(connection, self._complaints),
            "group.id": group,  # required, never joined
            "enable.auto.commit": False,
        }
        with translating(self._complaints):
            self._consumer = Consumer(options)
        try:
            with translating(self._complaints):
                self._consumer.assign(self._ends(topic, patience))
        except KafkaFailure:
            self._consumer.close()
            raise

    def _ends(self, topic: str, patience: float) -> list[TopicPartition]:
        numbers = self._consumer.list_topics(topic, timeout=patience).topics[topic].partitions
        places = [TopicPartition(topic, number) for number in numbers]
        for place in places:
            place.offset = self._consumer.get_watermark_offsets(place, timeout=patience)[1]
        return places

    def wait(self, seconds: float) -> bool:
        """Wait for a hint. Returns False after a timeout; raises ``KafkaFailure`` where none can arrive."""
        with translating(self._complaints):
            message = self._consumer.poll(seconds)
            if message is not None and (error := message.error()) is not None:
                raise KafkaException(error)
        return message is not None

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()
