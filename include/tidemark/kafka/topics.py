"""Descriptions of single topics: id, partitions, settings and the user's rights.

Reads metadata only, and never creates or changes a topic.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tidemark.connections import KafkaConnection
from tidemark.kafka.librdkafka import Complaints, client_options, translating
from tidemark.kafka.topic_ids import uuid_of


class PartitionState(NamedTuple):
    """One partition as the brokers see it."""

    number: int
    has_leader: bool
    in_sync: int
    """The number of in-sync replicas, with the leader."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the brokers see it."""

    id: UUID | None
    """None where the broker has no topic ids."""
    partitions: tuple[PartitionState, ...]
    may_write: bool = True
    """Whether this user may write; True where rights were not requested."""


class TopicQuestions:
    """Describes topics of one cluster. Thread-safe."""

    def __init__(self, connection: KafkaConnection, patience: float) -> None:
        """``patience`` is the timeout of a request in seconds."""
        self._patience, self._complaints = patience, Complaints()
        with translating(self._complaints):
            self._admin = AdminClient(client_options(connection, self._complaints))

    def describe(self, topic: str, *, with_rights: bool = False) -> TopicDescription:
        """The topic's description. Raises ``UnknownTopic`` where it does not exist."""
        return self.ask(topic, with_rights=with_rights)()

    def ask(self, topic: str, *, with_rights: bool = False) -> Callable[[], TopicDescription]:
        """Send the request of ``describe`` without waiting. The returned function waits for the answer."""
        with self._translating():
            asked = self._admin.describe_topics(
                TopicCollection([topic]),
                include_authorized_operations=with_rights,
                request_timeout=self._patience,
            )[topic]

        def answer() -> TopicDescription:
            with self._translating():
                return _description(asked.result(), with_rights)

        return answer

    def setting(self, topic: str, name: str) -> str | None:
        """One of the topic's settings; None where this user may not read it."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        with self._translating():
            asked = self._admin.describe_configs([resource], request_timeout=self._patience)
            try:
                return str(asked[resource].result()[name].value)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise
                return None

    def _translating(self) -> AbstractContextManager[None]:
        return translating(self._complaints, self._admin.poll)


def _description(found: Any, with_rights: bool) -> TopicDescription:
    partitions = tuple(
        PartitionState(one.id, one.leader is not None and one.leader.id >= 0, len(_present(one.isr)))
        for one in found.partitions
    )
    may_write = not with_rights or _allows(found.authorized_operations)
    return TopicDescription(uuid_of(found.topic_id), partitions, may_write)


def _present(nodes: Sequence[Any]) -> list[Any]:
    return [node for node in nodes if node is not None and node.id >= 0]


def _allows(operations: Sequence[AclOperation] | None) -> bool:
    """Whether writing is allowed. A broker without access control may list no operation."""
    return not operations or bool({AclOperation.WRITE, AclOperation.ALL} & {*operations})
