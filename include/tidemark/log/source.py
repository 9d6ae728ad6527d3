"""The current state of the source's topics in Kafka: names, partitions, first and next offsets.

Reads metadata only, never a record: records are read by the ``capture`` application, exactly those that
were bound.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

from tidemark.connections import KafkaConnection
from tidemark.errors import with_fields
from tidemark.kafka.errors import KafkaFailure
from tidemark.kafka.offsets import TopicOffsets, looking_at_topics
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
    """The current state of all topics of the pipeline; topics are listed anew at each call."""
    with _looking(source, connection) as kafka:
        topics = _chosen_topics(source, kafka.topics())
        for topic, policy in kafka.cleanup_policies(topics).items():
            if "compact" in policy:
                raise CompactedTopic(source.pipeline, topic)
        return _look_at(kafka, topics)


def read_still_available(
    source: SourceTopics, connection: KafkaConnection, topics: Iterable[str]
) -> Available:
    """The current state of these topics; a topic that does not exist is left out."""
    with _looking(source, connection) as kafka:
        return _look_at(kafka, sorted({*topics} & kafka.topics()))


def _look_at(kafka: TopicOffsets, topics: Sequence[str]) -> Available:
    # Ids first: if a topic is recreated between the two reads, an old id with new offsets is noticed at the
    # next call, but a new id with old offsets never would be.
    ids = kafka.ids(topics)
    return Available({place: Offsets(*held) for place, held in kafka.offsets(topics).items()}, ids)


@contextmanager
def _looking(source: SourceTopics, connection: KafkaConnection) -> Iterator[TopicOffsets]:
    try:
        with looking_at_topics(connection, source.isolation) as kafka:
            yield kafka
    except KafkaFailure as error:
        raise KafkaUnreachable(source.pipeline, connection.servers, error.reason) from error


def _chosen_topics(source: SourceTopics, existing: set[str]) -> list[str]:
    for topic in source.topics:
        if topic not in existing:
            raise NoSuchTopic(source.pipeline, topic)
    return sorted(topic for topic in existing if source.declares(topic))
