"""The current state of the source's topics in Kafka: names, partitions, first and next offsets.

Reads metadata only, never a record: records are read by the ``capture`` application, exactly those that
were bound.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field

from tidemark.connections import KafkaConnection
from tidemark.errors import with_fields
from tidemark.kafka.errors import KafkaFailure
from tidemark.kafka.offsets import TopicOffsets, looking_at_topics
from tidemark.kafka.source_topics import SourceTopics
from tidemark.log.errors import LogError
from tidemark.log.model.binding import Available, Offsets, TopicPartition


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
        return _look_at_all(source, kafka)


def read_still_available(
    source: SourceTopics, connection: KafkaConnection, topics: Iterable[str]
) -> Available:
    """The current state of these topics; a topic that does not exist is left out."""
    with _looking(source, connection) as kafka:
        return _look_at_some(kafka, topics)


class WatchedSource:
    """The source's topics, read again and again through clients that stay connected.

    After an error the next read connects anew. Not thread-safe.
    """

    def __init__(self, source: SourceTopics, connection: KafkaConnection) -> None:
        self._source, self._connection = source, connection
        self._clients = ExitStack()
        self._kafka: TopicOffsets | None = None

    def available(self) -> Available:
        """See ``read_available``."""
        with self._looking() as kafka:
            return _look_at_all(self._source, kafka)

    def still_available(self, topics: Iterable[str]) -> Available:
        """See ``read_still_available``."""
        with self._looking() as kafka:
            return _look_at_some(kafka, topics)

    def ends(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The next offset of these partitions: one request."""
        with self._looking() as kafka:
            return kafka.ends(places)

    def close(self) -> None:
        """Disconnect."""
        self._kafka = None
        self._clients.close()

    @contextmanager
    def _looking(self) -> Iterator[TopicOffsets]:
        try:
            if self._kafka is None:
                self._kafka = self._clients.enter_context(_looking(self._source, self._connection))
            yield self._kafka
        except KafkaUnreachable:
            self._forget()
            raise
        except KafkaFailure as error:
            self._forget()
            raise KafkaUnreachable(self._source.pipeline, self._connection.servers, error.reason) from error

    def _forget(self) -> None:
        with suppress(Exception):  # what failed to answer may fail to close
            self.close()
        self._clients = ExitStack()


def _look_at_all(source: SourceTopics, kafka: TopicOffsets) -> Available:
    topics = _chosen_topics(source, kafka.topics())
    for topic, policy in kafka.cleanup_policies(topics).items():
        if "compact" in policy:
            raise CompactedTopic(source.pipeline, topic)
    return _look_at(kafka, topics)


def _look_at_some(kafka: TopicOffsets, topics: Iterable[str]) -> Available:
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
