"""What Kafka's topics hold right now: names, partitions, first and next offsets.

Reads metadata only, never a record: records are read by the ``capture`` application, exactly those that
were bound.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError
from kafka.structs import TopicPartition as KafkaPartition

from tidemark.connections import KafkaConnection
from tidemark.errors import with_fields
from tidemark.kafka.source_topics import SourceTopics
from tidemark.log.errors import LogError
from tidemark.log.model.binding import Available, Offsets


@with_fields
class KafkaUnreachable(LogError):
    """No broker answered."""

    pipeline: str
    servers: str
    reason: str

    text = (
        "{pipeline}: Kafka does not answer at {servers} ({reason}). Nothing was bound. Start it (embedded: "
        "tidemark services up), or correct the connection."
    )


@with_fields
class NoSuchTopic(LogError):
    """A topic that the pipeline names does not exist."""

    needs_person = True

    pipeline: str
    topic: str
    was_read: bool = field(default=False, kw_only=True)

    def __str__(self) -> str:
        what, advice = (
            (
                f"Kafka has no topic {self.topic} any more, and this pipeline has read it",
                (
                    "Restore it, or take it out of source.kafka.topics. A topic that is made again under its "
                    "name is another one: the log's gate closes until that is accepted."
                ),
            )
            if self.was_read
            else (
                f"Kafka has no topic {self.topic}",
                f"Create it with: tidemark topics create {self.pipeline}; or correct source.kafka.topics.",
            )
        )
        return f"{self.pipeline}: {what}. Nothing was bound. {advice}"


@with_fields
class CompactedTopic(LogError):
    """A topic whose records vanish one by one: a second read of the same offsets would differ."""

    needs_person = True

    pipeline: str
    topic: str

    text = (
        "{pipeline}: topic {topic} has cleanup.policy=compact, so its records vanish one by one. Nothing was "
        "bound. Set cleanup.policy=delete, or take the topic out of the pipeline."
    )


def read_available(source: SourceTopics, connection: KafkaConnection) -> Available:
    """What every topic that the pipeline reads holds; prefixes are listed anew at each call."""
    with _clients(source, connection) as (consumer, admin):
        topics = _chosen_topics(source, consumer.topics())
        _refuse_compacted(source, admin, topics)
        return _look_at(consumer, admin, topics)


def read_still_available(
    source: SourceTopics, connection: KafkaConnection, topics: Iterable[str]
) -> Available:
    """What these topics still hold; one that is gone is simply not there."""
    with _clients(source, connection) as (consumer, admin):
        return _look_at(consumer, admin, sorted({*topics} & consumer.topics()))


def _look_at(consumer: KafkaConsumer, admin: KafkaAdminClient, topics: Sequence[str]) -> Available:
    # Ids first: of a topic that is made again in between, old ids with new offsets are noticed next time,
    # new ids with old offsets never would be.
    described = admin.describe_topics(list(topics)) if topics else []
    ids = {topic["name"]: str(topic["topic_id"]) for topic in described if not topic["error_code"]}
    places = [
        KafkaPartition(topic, partition)
        for topic in topics
        for partition in sorted(consumer.partitions_for_topic(topic) or ())
    ]
    earliest, latest = consumer.beginning_offsets(places), consumer.end_offsets(places)
    offsets = {(p.topic, p.partition): Offsets(earliest[p], latest[p]) for p in places}
    return Available(offsets, ids)


@contextmanager
def _clients(
    source: SourceTopics, connection: KafkaConnection
) -> Iterator[tuple[KafkaConsumer, KafkaAdminClient]]:
    options = connection.client_options() | {"bootstrap_timeout_ms": 10_000}
    try:
        with (
            KafkaConsumer(isolation_level=source.isolation, **options) as consumer,
            KafkaAdminClient(**options) as admin,
        ):
            yield consumer, admin
    except KafkaError as error:
        raise KafkaUnreachable(
            source.pipeline, connection.servers, f"{type(error).__name__}: {error}"
        ) from error


def _chosen_topics(source: SourceTopics, existing: set[str]) -> list[str]:
    for topic in source.topics:
        if topic not in existing:
            raise NoSuchTopic(source.pipeline, topic)
    return sorted(topic for topic in existing if source.declares(topic))


def _refuse_compacted(source: SourceTopics, admin: KafkaAdminClient, topics: Sequence[str]) -> None:
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, ["cleanup.policy"]) for topic in topics]
    if not resources:
        return
    for topic, configs in admin.describe_configs(resources, config_filter="all").get("topic", {}).items():
        if "compact" in str(configs["cleanup.policy"]["value"]):
            raise CompactedTopic(source.pipeline, topic)
