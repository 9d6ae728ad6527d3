"""Kafka's ids of topics: a topic that is deleted and re-created has the same name and another id.

Clusters without topic ids answer with zeroes, which become None. Bindings store an id as a UUID; a kafka
writer's row stores its target's id as librdkafka prints it. Both forms are durable.
"""

from base64 import b64encode, urlsafe_b64encode
from typing import Protocol
from uuid import UUID


class _Halves(Protocol):
    def get_most_significant_bits(self) -> int: ...
    def get_least_significant_bits(self) -> int: ...


def uuid_of(topic_id: _Halves) -> UUID | None:
    """librdkafka's id as a UUID; None where the broker has no topic ids."""
    halves = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
    found = UUID(bytes=b"".join(half.to_bytes(8, "big", signed=True) for half in halves))
    return found if found.int else None


def librdkafka_text(id_: UUID) -> str:
    """An id as librdkafka prints it: 22 characters of plain base 64, which may contain ``/`` and ``+``."""
    return b64encode(id_.bytes).decode().rstrip("=")


def kafka_text(id_: UUID) -> str:
    """An id as Kafka's own tools print it: 22 characters of URL-safe base 64."""
    return urlsafe_b64encode(id_.bytes).decode().rstrip("=")
