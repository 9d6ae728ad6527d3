"""Sends actions to a Kafka topic as kafka-journal's producers do: idempotent, acknowledged, lz4."""

from collections.abc import Iterable

from kafka import KafkaProducer

from tidemark.connections import KafkaConnection
from tidemark.journal.action import Action
from tidemark.journal.codec.record import write_action


def send_actions(kafka: KafkaConnection, topic: str, actions: Iterable[Action]) -> None:
    """Send the actions in order; returns when all are acknowledged."""
    options = kafka.client_options()
    with KafkaProducer(
        acks="all", enable_idempotence=True, compression_type="lz4", linger_ms=5, **options
    ) as producer:
        for action in actions:
            key, value, timestamp, headers = write_action(action)
            producer.send(topic, value, key=key, headers=list(headers), timestamp_ms=timestamp)
        producer.flush()
