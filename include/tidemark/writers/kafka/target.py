"""The topic that a ``kafka`` writer republishes to: how it is reached, and what can be wrong with it.

Never creates a topic: its partitions decide where every key goes, for good, and that is a person's choice.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
)

from tidemark.connections import KafkaConnection
from tidemark.delivery.writer import TargetMissing
from tidemark.errors import with_fields
from tidemark.writers.errors import WriterError

ANSWERS_WITHIN = 20.0
"""Seconds after which a broker is said not to answer: less than whoever is asked to stop has left."""

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a broker says that gives topics no ids."""

_FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})


@dataclass(frozen=True, slots=True)
class Target:
    """One writer's topic."""

    pipeline: str
    writer: str
    topic: str
    connection_id: str
    connection: KafkaConnection

    @property
    def origin(self) -> str:
        """What tells this writer's messages from all others in the topic."""
        return f"{self.pipeline}/{self.writer}"

    def transactional_id(self, partition: int) -> str:
        """By which Kafka knows who writes to a partition, and stops whoever did so before."""
        return f"tidemark.{self.pipeline}.{self.writer}.{partition}"


@with_fields
class NoTargetTopic(TargetMissing):
    """The topic that a writer republishes to does not exist."""

    target: Target

    def __str__(self) -> str:
        create = f"tidemark topics create {self.target.pipeline} {self.target.writer} --partitions N"
        return (
            f"{self.target.origin}: Kafka has no topic {self.target.topic} (connection "
            f"{self.target.connection_id}). Nothing was sent. Create it with the partitions it shall keep: "
            f"{create}; or correct the writer's `topic`."
        )


@with_fields
class TargetFailed(WriterError):
    """Kafka did not do what was asked of it."""

    target: Target
    what: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.target.origin}: topic {self.target.topic} (connection {self.target.connection_id}, "
            f"{self.target.connection.servers}) {self.what}: {self.reason.rstrip('.')}. What is not there "
            "is sent at the next attempt, and nothing twice."
        )


@with_fields
class Fenced(WriterError):
    """Somebody else writes to the partition by now."""

    target: Target
    partition: int

    def __str__(self) -> str:
        return (
            f"{self.target.origin}: a newer producer with the transactional id "
            f"{self.target.transactional_id(self.partition)} writes to partition {self.partition} of topic "
            f"{self.target.topic}, so Kafka stopped this one. What it had not committed is not there; the "
            "newer one sends it."
        )


class Complaints:
    """What a client of Kafka says while nobody waits for an answer: usually why there is none."""

    def __init__(self) -> None:
        self._last: str | None = None

    def note(self, error: KafkaError) -> None:
        """The client's ``error_cb``."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # says less than what came before it
            self._last = error.str()

    def about(self, error: KafkaException) -> str:
        """The error, with what led to it."""
        said = str(error.args[0].str())
        return f"{said} ({self._last})" if self._last else said


def is_fenced(error: KafkaException) -> bool:
    """Whether the client was stopped because there is a newer one."""
    return error.args[0].code() in _FENCED


def client_options(target: Target, complaints: Complaints) -> dict[str, Any]:
    """What all clients have in common."""
    return {
        **target.connection.librdkafka_options(),
        "error_cb": complaints.note,
        "log_level": 0,  # what is worth knowing is in the errors that are raised
    }


@contextmanager
def consuming(target: Target, what: str, isolation: str = "read_committed") -> Iterator[Consumer]:
    """A consumer that belongs to no group; ``what`` ends the sentence about its failure."""
    complaints = Complaints()
    consumer = Consumer(
        {
            **client_options(target, complaints),
            "group.id": target.transactional_id(0),  # has to be given; is never joined
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            # The end of a partition is to be seen at once: nobody waits for more to come.
            "fetch.wait.max.ms": 5,
            "fetch.queue.backoff.ms": 5,
        }
    )
    try:
        yield consumer
    except KafkaException as error:
        with suppress(KafkaException):
            consumer.poll(0)  # lets the client say why
        raise TargetFailed(target, what, complaints.about(error)) from error
    finally:
        consumer.close()


def count_partitions(target: Target) -> int:
    """How many partitions the topic has now."""
    with consuming(target, "could not be looked at") as consumer:
        topic = consumer.list_topics(target.topic, timeout=ANSWERS_WITHIN / 2).topics[target.topic]
        if topic.error is not None and topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise NoTargetTopic(target)
        if topic.error is not None:
            raise KafkaException(topic.error)
        return len(topic.partitions)


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """What a broker says of a topic."""

    id: str | None
    """As Kafka's own tools print it; None where the broker gives topics no ids."""
    partitions: int


@contextmanager
def _asking(target: Target) -> Iterator[AdminClient]:
    complaints = Complaints()
    admin = AdminClient(client_options(target, complaints))
    try:
        yield admin
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise NoTargetTopic(target) from None
        admin.poll(0)  # lets the client say why
        raise TargetFailed(target, "could not be looked at", complaints.about(error)) from error


def keeps_the_middle(target: Target) -> bool:
    """Whether Kafka removes messages from the beginning of the topic only; no, where it may not be asked."""
    resource = ConfigResource(ResourceType.TOPIC, target.topic)
    with _asking(target) as admin:
        asked = admin.describe_configs([resource], request_timeout=ANSWERS_WITHIN / 2)
        try:
            found = asked[resource].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            return False
    return "compact" not in str(found["cleanup.policy"].value)


def describe_topic(target: Target) -> DescribedTopic:
    """The topic's id and how many partitions it has now."""
    with _asking(target) as admin:
        asked = admin.describe_topics(TopicCollection([target.topic]), request_timeout=ANSWERS_WITHIN / 2)
        found = asked[target.topic].result()
    id_ = str(found.topic_id)
    return DescribedTopic(None if id_ == NO_ID else id_, len(found.partitions))
