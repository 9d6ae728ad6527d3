"""The current state of topics: names, ids, cleanup policies, first and next offsets.

Reads metadata only, never a record.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import TopicPartition as KafkaPartition

from tidemark.connections import KafkaConnection
from tidemark.kafka.admin import admin_client, offsets_client, translating

CLEANUP_POLICY = "cleanup.policy"
ENDS_MS = 5_000


class TopicOffsets:
    """Reads metadata of one cluster's topics. Every method may raise ``KafkaFailure``."""

    def __init__(self, consumer: KafkaConsumer, admin: KafkaAdminClient) -> None:
        self._consumer, self._admin = consumer, admin

    @translating()
    def topics(self) -> set[str]:
        """The names of all topics."""
        return set(self._consumer.topics())

    @translating()
    def ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The ids of these topics, without topics that do not exist; see ``topic_ids``."""
        described = (
            self._admin.describe_topics(list(topics)) if topics else []
        )  # an empty list would mean all topics
        return {topic["name"]: str(topic["topic_id"]) for topic in described if not topic["error_code"]}

    @translating()
    def offsets(self, topics: Iterable[str]) -> dict[tuple[str, int], tuple[int, int]]:
        """First and next offset of every partition, as the isolation level sees them."""
        places = [
            KafkaPartition(topic, partition)
            for topic in topics
            for partition in sorted(self._consumer.partitions_for_topic(topic) or ())
        ]
        earliest, latest = self._consumer.beginning_offsets(places), self._consumer.end_offsets(places)
        return {(place.topic, place.partition): (earliest[place], latest[place]) for place in places}

    @translating()
    def ends(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The next offset of these partitions, in one request to each broker that leads one of them.

        Soon gives up: the client asks for a topic that was deleted meanwhile again and again.
        """
        found = self._consumer.end_offsets([KafkaPartition(*place) for place in places], ENDS_MS)
        return {(place.topic, place.partition): end for place, end in found.items()}

    @translating()
    def cleanup_policies(self, topics: Sequence[str]) -> dict[str, str]:
        """The ``cleanup.policy`` of these topics."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, [CLEANUP_POLICY]) for topic in topics]
        if not resources:
            return {}
        found = self._admin.describe_configs(resources, config_filter="all").get("topic", {})
        return {topic: str(configs[CLEANUP_POLICY]["value"]) for topic, configs in found.items()}


@contextmanager
def looking_at_topics(connection: KafkaConnection, isolation: str) -> Iterator[TopicOffsets]:
    """A ``TopicOffsets`` until the end of the block. ``isolation``: the isolation level of its offsets."""
    with offsets_client(connection, isolation) as consumer, admin_client(connection) as admin:
        yield TopicOffsets(consumer, admin)
