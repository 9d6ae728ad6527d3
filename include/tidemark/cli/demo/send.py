"""Sends actions to a Kafka topic as kafka-journal's producers do: idempotent, acknowledged, lz4."""

from collections.abc import Iterable

from tidemark.connections import KafkaConnection
from tidemark.journal.action import Action
from tidemark.journal.codec.record import write_action
from tidemark.kafka.producer import RecordToSend, send_all

PATIENCE = 60.0


def send_actions(kafka: KafkaConnection, topic: str, actions: Iterable[Action]) -> None:
    """Send the actions in order; returns when all are acknowledged."""
    records = (_record_of(topic, action) for action in actions)
    send_all(kafka, records, PATIENCE, as_java=True, compression="lz4")


def _record_of(topic: str, action: Action) -> RecordToSend:
    key, value, timestamp, headers = write_action(action)
    return RecordToSend(topic, key, value, headers, timestamp)
