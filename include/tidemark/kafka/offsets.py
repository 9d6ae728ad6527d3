"""What topics hold right now: names, ids, cleanup policies, first and next offsets.

Reads metadata only, never a record.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import TopicPartition as KafkaPartition

from tidemark.connections import KafkaConnection
from tidemark.kafka.admin import admin_client, offsets_client

CLEANUP_POLICY = "cleanup.policy"


class TopicOffsets:
    """The topics of one cluster, asked about for a while. Any answer may raise ``KafkaFailure``."""

    def __init__(self, consumer: KafkaConsumer, admin: KafkaAdminClient) -> None:
        self._consumer, self._admin = consumer, admin

    def topics(self) -> set[str]:
        """The names of all topics."""
        return set(self._consumer.topics())

    def ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The ids of these topics, without those that are gone; see ``topic_ids``."""
        described = self._admin.describe_topics(list(topics)) if topics else []  # none would mean all
        return {topic["name"]: str(topic["topic_id"]) for topic in described if not topic["error_code"]}

    def offsets(self, topics: Iterable[str]) -> dict[tuple[str, int], tuple[int, int]]:
        """First and next offset of every partition, as the isolation of the reads sees them."""
        places = [
            KafkaPartition(topic, partition)
            for topic in topics
            for partition in sorted(self._consumer.partitions_for_topic(topic) or ())
        ]
        earliest, latest = self._consumer.beginning_offsets(places), self._consumer.end_offsets(places)
        return {(place.topic, place.partition): (earliest[place], latest[place]) for place in places}

    def cleanup_policies(self, topics: Sequence[str]) -> dict[str, str]:
        """How Kafka removes records of these topics."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, [CLEANUP_POLICY]) for topic in topics]
        if not resources:
            return {}
        found = self._admin.describe_configs(resources, config_filter="all").get("topic", {})
        return {topic: str(configs[CLEANUP_POLICY]["value"]) for topic, configs in found.items()}


@contextmanager
def looking_at_topics(connection: KafkaConnection, isolation: str) -> Iterator[TopicOffsets]:
    """Ask about topics for a while; ``isolation`` is that of the reads that follow."""
    with offsets_client(connection, isolation) as consumer, admin_client(connection) as admin:
        yield TopicOffsets(consumer, admin)
