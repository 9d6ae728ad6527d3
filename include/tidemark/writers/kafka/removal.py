"""Deletes the topic of a rendition of a kafka writer. Consumers of it are not known here, so an operator has
to ask for it."""

from dataclasses import dataclass

from tidemark.connections import KafkaConnection
from tidemark.errors import with_fields
from tidemark.kafka.admin import delete_topic
from tidemark.kafka.errors import KafkaFailure
from tidemark.kafka.topic_creation import missing_topics
from tidemark.writers.errors import WriterError
from tidemark.writers.kafka.kind import KafkaDeclaration
from tidemark.writers.removal import DropOption, PlaceContents


@with_fields
class TopicNotDeleted(WriterError):
    """Kafka did not delete a topic."""

    pipeline: str
    writer: str
    topic: str
    servers: str
    reason: str

    text = (
        "{pipeline}/{writer}: topic {topic} at {servers} was not deleted: {reason}. It is as it was. Run the "
        "same command again once Kafka does it; a topic that is gone by then is left alone."
    )


@dataclass(frozen=True)
class KafkaRemoval:
    """See ``PlaceRemoval``.

    Attributes:
        pipeline: The pipeline's name, for errors.
        declared: The writer at the rendition's place.
        connection: Kafka.
    """

    pipeline: str
    declared: KafkaDeclaration
    connection: KafkaConnection

    @property
    def option(self) -> DropOption | None:
        """See ``PlaceRemoval.option``."""
        return DropOption.TOPIC

    def look(self) -> PlaceContents:
        """See ``PlaceRemoval.look``."""
        topic = self.declared.topic
        return PlaceContents(f"topic {topic}", not missing_topics(self.pipeline, self.connection, [topic]))

    def drop(self) -> None:
        """See ``PlaceRemoval.drop``."""
        topic = self.declared.topic
        try:
            delete_topic(self.connection, topic)
        except KafkaFailure as error:
            reason, servers = error.reason.rstrip("."), self.connection.servers
            raise TopicNotDeleted(self.pipeline, self.declared.name, topic, servers, reason) from error
