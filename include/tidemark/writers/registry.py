"""From a pipeline's declaration to its writers: the one place that knows every kind."""

from tidemark.connections import Connections
from tidemark.delivery.writer import Writer
from tidemark.pipeline import model as declaration
from tidemark.writers.files.writer import FilesWriter
from tidemark.writers.journal.writer import JournalWriter
from tidemark.writers.kafka.writer import KafkaWriter


def build_writers(pipeline: declaration.Pipeline, connections: Connections) -> list[Writer]:
    """The pipeline's writers, in the order of the file."""
    return [_build(pipeline, declared, connections) for declared in pipeline.writers]


def _build(
    pipeline: declaration.Pipeline, declared: declaration.AnyWriter, connections: Connections
) -> Writer:
    match declared:
        case declaration.FilesDeclaration():
            return FilesWriter(pipeline.name, declared, pipeline.log.path)
        case declaration.JournalDeclaration():
            zone = pipeline.expiry.timezone if pipeline.expiry else "UTC"
            connection, topics = connections.cassandra[declared.connection], pipeline.source.kafka.topics
            return JournalWriter(pipeline.name, declared, connection, zone, topics=frozenset(topics))
        case declaration.KafkaDeclaration():
            return KafkaWriter(pipeline.name, declared, connections.kafka_targets[declared.connection])
