"""The settings of a journal client, from its caller's arguments or from a pipeline file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from tidemark.client.errors import NotAJournal
from tidemark.client.tables.active_tables import AskActive, ask_active
from tidemark.client.topic_record import ControlPlane
from tidemark.connections import (
    CONTROL,
    BadConnection,
    CassandraConnection,
    KafkaConnection,
    look_up_environment,
)
from tidemark.pipeline.connections import Lookup
from tidemark.pipeline.loader import find_pipeline
from tidemark.pipeline.model import Isolation, JournalDeclaration, Pipeline


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """The location of one topic's journal, and how it is read.

    Attributes:
        topic: The journal's topic.
        kafka: The cluster of the topic.
        cassandra: The cluster of the tables.
        declared: The tables, as a pipeline file declares them.
        isolation: Whether a read sees records of open transactions.
        control: The control plane that knows which topic was bound; None: the one in the cluster of the
            tables, for any pipeline.
        ask_active: Asks for the active rendition of the pipeline's writer; None without a pipeline.
    """

    topic: str
    kafka: KafkaConnection
    cassandra: CassandraConnection
    declared: JournalDeclaration
    isolation: Isolation
    control: ControlPlane | None = None
    ask_active: AskActive | None = None


def declare(keyspace: str, tables: Mapping[str, str] | None, consistency: str) -> JournalDeclaration:
    """The declaration of a keyspace, checked as that of a pipeline file. Raises ``NotAJournal``."""
    keys = {"keyspace": keyspace, "tables": dict(tables or {}), "consistency": consistency}
    try:
        return JournalDeclaration.model_validate({"name": "client", "kind": "journal", **keys})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise NotAJournal(keyspace, f"{place}: {first['msg'].removeprefix('Value error, ')}") from None


def settings_of(name: str, topic: str | None, writer: str | None, look_up: Lookup | None) -> JournalSettings:
    """The settings of a pipeline's journal. Raises ``NotAJournal`` where topic or writer is ambiguous."""
    pipeline = find_pipeline(name)
    chosen = _topic(pipeline, topic)
    journal = _writer(pipeline, chosen, writer)
    look_up = look_up or look_up_environment
    kafka, control = pipeline.source.kafka, control_connection(look_up, journal.connection)
    return JournalSettings(
        chosen,
        KafkaConnection.from_airflow(kafka.connection, look_up(kafka.connection)),
        CassandraConnection.from_airflow(journal.connection, look_up(journal.connection)),
        journal,
        kafka.isolation,
        ControlPlane(control, pipeline.name),
        ask_active(pipeline, journal, control),
    )


def control_connection(look_up: Lookup, beside: str) -> CassandraConnection:
    """The control plane's connection; where it is not configured, the connection of the tables."""
    try:
        return CassandraConnection.from_airflow(CONTROL, look_up(CONTROL))
    except BadConnection:
        return CassandraConnection.from_airflow(beside, look_up(beside))


def _topic(pipeline: Pipeline, topic: str | None) -> str:
    kafka = pipeline.source.kafka
    if kafka.format != "kafka-journal":
        raise NotAJournal(pipeline.name, f"its messages have format `{kafka.format}`, not `kafka-journal`.")
    if topic is None and len(kafka.topics) == 1 and not kafka.topic_prefixes:
        return kafka.topics[0]
    known = ", ".join([*kafka.topics, *(f"{prefix}…" for prefix in kafka.topic_prefixes)])
    if topic is None:
        raise NotAJournal(pipeline.name, f"it reads several topics; name one of them: {known}.")
    if not kafka.reads(topic):
        raise NotAJournal(pipeline.name, f"it does not read topic {topic}; it reads: {known}.")
    return topic


def _writer(pipeline: Pipeline, topic: str, writer: str | None) -> JournalDeclaration:
    journals = [journal for _, journal in pipeline.journals if re.search(journal.namespaces, topic)]
    known = ", ".join(journal.name for journal in journals)
    if not journals:
        raise NotAJournal(pipeline.name, f"none of its writers puts topic {topic} into a journal.")
    if writer is None and len(journals) > 1:
        raise NotAJournal(pipeline.name, f"it has several journals; name the writer of one: {known}.")
    for journal in journals:
        if writer in (None, journal.name):
            return journal
    raise NotAJournal(pipeline.name, f"no writer {writer} puts topic {topic} into a journal; but: {known}.")
