"""How the kind ``kafka`` declares itself: keys, needs, claims, and how it is built. Imports no writer."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from tidemark.connections import Connections
from tidemark.pipeline import checks
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.parts import ConnectionId, Count, Topic, TopicCreation
from tidemark.pipeline.transforms import Transforms
from tidemark.pipeline.writers import (
    ConnectionType,
    NeededConnection,
    TopicClaim,
    WriterClaim,
    WriterDeclaration,
    WriterKind,
)

if TYPE_CHECKING:
    from tidemark.writers.kafka.removal import KafkaRemoval
    from tidemark.writers.kafka.writer import KafkaWriter


class KafkaDeclaration(WriterDeclaration):
    """Republishes messages to a topic that exists already."""

    unshaping: ClassVar[frozenset[str]] = WriterDeclaration.unshaping | {"create"}

    kind: Literal["kafka"]
    topic: Annotated[Topic, AfterValidator(checks.own_topic)]
    create: TopicCreation = TopicCreation()
    connection: ConnectionId = "kafka_default"
    transforms: Transforms = ()
    reconcile: Annotated[Count, Field(ge=0, le=100_000)] = 1_000

    def connections(self) -> Iterable[NeededConnection]:
        """See ``WriterDeclaration``."""
        yield NeededConnection(ConnectionType.KAFKA, self.connection)

    def claims(self) -> Iterable[WriterClaim]:
        """See ``WriterDeclaration``."""
        yield TopicClaim("topic", self.connection, self.topic, has_renditions=True)

    @property
    def place(self) -> str:
        """See ``WriterDeclaration``: the topic."""
        return self.topic

    def sibling(self, place: str, number: int) -> str:
        """See ``WriterDeclaration``."""
        return checks.topic(f"{place}.r{number}")

    def at_place(self, place: str) -> Self:
        """See ``WriterDeclaration``."""
        return self.model_copy(update={"topic": place})


def _build(pipeline: Pipeline, declared: KafkaDeclaration, connections: Connections) -> "KafkaWriter":
    from tidemark.writers.kafka.writer import KafkaWriter

    connection, read_as = connections.kafka_targets[declared.connection], pipeline.source.kafka.format
    return KafkaWriter(pipeline.name, declared, connection, source_format=read_as)


def _removal(
    pipeline: Pipeline, declared: KafkaDeclaration, connections: Connections, topics: Collection[str]
) -> "KafkaRemoval":
    from tidemark.writers.kafka.removal import KafkaRemoval

    return KafkaRemoval(pipeline.name, declared, connections.kafka_targets[declared.connection])


KAFKA = WriterKind("kafka", KafkaDeclaration, _build, _removal)
