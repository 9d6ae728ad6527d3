"""How the kind ``journal`` declares itself. Its keys are in ``tidemark.pipeline.journal``."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from tidemark.connections import Connections
from tidemark.pipeline.journal import JournalDeclaration
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.writers import WriterKind

if TYPE_CHECKING:
    from tidemark.writers.journal.removal import JournalRemoval
    from tidemark.writers.journal.writer import JournalWriter


def _build(pipeline: Pipeline, declared: JournalDeclaration, connections: Connections) -> "JournalWriter":
    from tidemark.writers.journal.writer import JournalWriter

    zone = pipeline.expiry.timezone if pipeline.expiry else "UTC"
    connection, topics = connections.cassandra[declared.connection], pipeline.source.kafka.topics
    return JournalWriter(pipeline.name, declared, connection, zone, topics=frozenset(topics))


def _removal(
    pipeline: Pipeline, declared: JournalDeclaration, connections: Connections, topics: Collection[str]
) -> "JournalRemoval":
    from tidemark.writers.journal.removal import JournalRemoval

    connection = connections.cassandra[declared.connection]
    return JournalRemoval(pipeline.name, declared, connection, frozenset(topics))


JOURNAL = WriterKind("journal", JournalDeclaration, _build, _removal)
