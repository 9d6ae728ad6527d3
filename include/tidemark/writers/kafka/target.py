"""The topic that a ``kafka`` writer republishes to: its connection, its identity and its errors.

Never creates a topic: the number of partitions decides for good where each key goes, and an operator chooses
it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tidemark.connections import KafkaConnection
from tidemark.delivery.writer import TargetMissing
from tidemark.errors import with_fields
from tidemark.kafka.consumer import READ_COMMITTED, PartitionReader, WhenGone
from tidemark.kafka.errors import KafkaFailure, ProducerFenced, UnknownTopic
from tidemark.kafka.producer import TransactionalProducer
from tidemark.kafka.topic_ids import librdkafka_text
from tidemark.kafka.topics import TopicQuestions
from tidemark.outputs.model.consumer_name import split_consumer
from tidemark.writers.errors import WriterError

ANSWERS_WITHIN = 20.0
"""Timeout of requests to the brokers in seconds; shorter than the grace period after SIGTERM."""


@dataclass(frozen=True, slots=True)
class TargetTopic:
    """The topic of one writer.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        topic: The topic's name.
        connection_id: The name of the connection, for error texts.
        connection: The connection.
    """

    pipeline: str
    writer: str
    topic: str
    connection_id: str
    connection: KafkaConnection

    @property
    def origin(self) -> str:
        """The value of the header that marks this writer's messages in the topic."""
        return f"{self.pipeline}/{self.writer}"

    def transactional_id(self, partition: int) -> str:
        """The id of a partition's producer: Kafka fences the earlier producer with the same one."""
        return f"tidemark.{self.pipeline}.{self.writer}.{partition}"


@with_fields
class NoTargetTopic(TargetMissing):
    """The topic that a writer republishes to does not exist."""

    target: TargetTopic

    def __str__(self) -> str:
        writer, number = split_consumer(self.target.writer)
        there = (
            f"{self.target.origin}: Kafka has no topic {self.target.topic} (connection "
            f"{self.target.connection_id}). Nothing was sent."
        )
        if number is not None:  # its place is no topic of the file, and a build makes it
            return f"{there} Build it: tidemark renditions build {self.target.pipeline} {writer}"
        create = f"tidemark topics create {self.target.pipeline} {writer} --partitions N"
        return (
            f"{there} Create it with the partitions it shall keep: {create}; or correct the writer's `topic`."
        )


@with_fields
class TargetFailed(WriterError):
    """A request to Kafka failed."""

    target: TargetTopic
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
    """A newer producer has fenced this one.

    Attributes:
        target: The topic.
        partition: The partition.
    """

    target: TargetTopic
    partition: int

    def __str__(self) -> str:
        return (
            f"{self.target.origin}: a newer producer with the transactional id "
            f"{self.target.transactional_id(self.partition)} writes to partition {self.partition} of topic "
            f"{self.target.topic}, so Kafka stopped this one. What it had not committed is not there; the "
            "newer one sends it."
        )


@contextmanager
def reading(target: TargetTopic, what: str, isolation: str = READ_COMMITTED) -> Iterator[PartitionReader]:
    """A reader of the topic; ``what`` ends the sentence about its failure."""
    with blaming(target, what), _reader(target, isolation, ANSWERS_WITHIN) as reader:
        yield reader


def _reader(target: TargetTopic, isolation: str, patience: float) -> PartitionReader:
    group, gone = target.transactional_id(0), WhenGone.BEGIN_AT_EARLIEST
    return PartitionReader(target.connection, group, patience, isolation=isolation, when_gone=gone)


def producer_of(target: TargetTopic, partition: int) -> TransactionalProducer:
    """The one producer that may write to a partition, not opened yet."""
    return TransactionalProducer(target.connection, target.transactional_id(partition), ANSWERS_WITHIN)


@contextmanager
def blaming(target: TargetTopic, what: str, partition: int | None = None) -> Iterator[None]:
    """Convert Kafka's failures to errors that name the target; ``what`` ends the sentence about them."""
    try:
        yield
    except ProducerFenced as error:
        raise Fenced(target, partition or 0) from error
    except KafkaFailure as error:
        where = "" if partition is None else f" in partition {partition}"
        raise TargetFailed(target, f"{what}{where}", error.reason) from error


@contextmanager
def _describing(target: TargetTopic) -> Iterator[None]:
    with blaming(target, "could not be looked at"):
        try:
            yield
        except UnknownTopic:
            raise NoTargetTopic(target) from None


def count_partitions(target: TargetTopic) -> int:
    """How many partitions the topic has now."""
    with _describing(target), _reader(target, READ_COMMITTED, ANSWERS_WITHIN / 2) as reader:
        return len(reader.partitions(target.topic))


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic as the broker describes it.

    Attributes:
        id: Kafka's id as librdkafka prints it; None where the broker has no topic ids.
        partitions: The number of partitions.
    """

    id: str | None
    partitions: int


def keeps_the_middle(target: TargetTopic) -> bool:
    """Whether Kafka removes messages only from the beginning of the topic; False where that may not be
    read."""
    with _describing(target):
        policy = TopicQuestions(target.connection, ANSWERS_WITHIN / 2).setting(target.topic, "cleanup.policy")
    return policy is not None and "compact" not in policy


def describe_topic(target: TargetTopic) -> DescribedTopic:
    """The topic's present id and number of partitions."""
    with _describing(target):
        found = TopicQuestions(target.connection, ANSWERS_WITHIN / 2).describe(target.topic)
    return DescribedTopic(librdkafka_text(found.id) if found.id else None, len(found.partitions))
