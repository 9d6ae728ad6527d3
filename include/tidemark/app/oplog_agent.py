"""What an OpLog agent needs before it starts: its topic and its collection, made where they are missing.

An agent that only takes operations in needs Kafka alone; the record of partitions is read where Cassandra
answers.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.topics import create_topics_of
from tidemark.client.collection.settings import CollectionSettings
from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.connections import KafkaConnection, OtherConnection
from tidemark.consensus.control_plane import look_at_control, open_control
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import known_writer, start_of
from tidemark.errors import with_fields
from tidemark.kafka.errors import UnknownTopic
from tidemark.kafka.topic_shape import CreationOutcome, TopicShape
from tidemark.kafka.topics import TopicDescription, TopicQuestions
from tidemark.log.files.parquet import LogFolder
from tidemark.log.fixed_topics import record_topic, recorded_topic
from tidemark.log.source import read_available
from tidemark.log.state.control import LogControl
from tidemark.oplog.agent.errors import AgentError, NoAgent
from tidemark.oplog.agent.server.tokens import tokens_of
from tidemark.oplog.agent.settings import AgentSettings, changed, password_tokens
from tidemark.oplog.agent.streams.hub.hub_reader import FollowedTopic
from tidemark.oplog.agent.streams.service import Streams
from tidemark.oplog.agent.streams.settings import StreamSettings, UnknownId
from tidemark.oplog.agent.streams.sources.collection_store import CollectionStore
from tidemark.oplog.agent.streams.sources.commit_log import READER, LoggedBindings
from tidemark.oplog.agent.streams.sources.topic_door import KafkaTopic
from tidemark.oplog.agent.topic import AgentTopic
from tidemark.pipeline.model import Pipeline, source_topics
from tidemark.writers.collection.kind import CollectionDeclaration
from tidemark.writers.renditions import build_declared

PATIENCE = 10.0
"""The timeout of a request to Kafka in seconds."""

events = structlog.get_logger()


@with_fields
class TopicRefused(AgentError):
    """The topic of an agent cannot be created or used."""

    needs_person = True

    pipeline: str
    topic: str
    problem: str

    text = "{pipeline}: the agent was not started, because of its topic {topic}: {problem}"


def agent_settings(
    pipeline: Pipeline,
    look_up: Callable[[str], Mapping[str, Any]],
    environ: Mapping[str, str],
    *,
    is_ingest_only: bool = False,
    **options: object,
) -> AgentSettings:
    """The settings of a pipeline's agent: options go before ``OPLOGD_…`` variables, these before the file.

    Raises ``NoAgent``, ``BadAgentSetting``, ``BadConnection`` or ``OpenToAll``.
    """
    if pipeline.agent is None:
        raise NoAgent(pipeline.name)
    declared, tokens = changed(pipeline.agent, environ, options), password_tokens(environ)
    if declared.tokens is not None:
        connection = OtherConnection.from_airflow(declared.tokens, look_up(declared.tokens))
        tokens += tokens_of(declared.tokens, connection)
    source = pipeline.source.kafka
    kafka = KafkaConnection.from_airflow(source.connection, look_up(source.connection))
    (topic,) = source.topics
    return AgentSettings(pipeline.name, topic, kafka, declared, tokens, is_ingest_only)


def agent_topic(opened: OpenPipeline, settings: AgentSettings) -> AgentTopic:
    """The topic of an agent, as it is now. Created where it is missing.

    Raises ``TopicRefused``, or ``KafkaFailure`` where Kafka does not answer.
    """
    questions = TopicQuestions(settings.kafka, PATIENCE)

    def describe() -> TopicDescription:
        return questions.describe(settings.topic)

    topic = AgentTopic(
        settings.pipeline, settings.topic, describe, lambda: recorded_partitions(opened, settings.topic)
    )
    try:
        topic.look()
    except UnknownTopic:
        open_control(opened.connections)  # a topic that was there before is known to the control plane
        (outcome,) = create_topics_of(opened, None, [settings.topic], TopicShape())
        if outcome.outcome is CreationOutcome.REFUSED:
            raise TopicRefused(settings.pipeline, settings.topic, outcome.problem or "it exists") from None
        events.info("topic created", topic=settings.topic)
        topic.look()
    return topic


def recorded_partitions(opened: OpenPipeline, topic: str) -> int:
    """The number by which the partitions of keys are computed. The first process that asks records it."""
    name, connections = opened.pipeline.name, opened.connections
    known = recorded_topic(LogControl(look_at_control(connections), name), topic)
    if known is None:
        available = read_available(source_topics(opened.pipeline), connections.kafka)
        known = record_topic(LogControl(open_control(connections), name), available, topic)
    return known.partitions


def register_collections(opened: OpenPipeline) -> None:
    """Register the pipeline's collections, and create their tables, where this has not been done."""
    consensus = open_control(opened.connections)
    positions = Positions(consensus, opened.pipeline.name)
    log = PublishedLog.open(LogControl(consensus, opened.pipeline.name), opened.pipeline.log.path)
    for declared in opened.pipeline.writers:
        if declared.has_times and positions.load(declared.name) is None:
            writer = build_declared(opened.pipeline, opened.connections, declared.name).writer
            known_writer(writer, log, positions, start_of(declared, log.end))
            events.info("collection registered", pipeline=opened.pipeline.name, writer=declared.name)


def agent_streams(opened: OpenPipeline, settings: AgentSettings, topic: AgentTopic) -> Streams:
    """The streams of an agent."""
    declared = settings.declared
    chosen = StreamSettings(
        pipeline=settings.pipeline,
        topic=settings.topic,
        kafka=settings.kafka,
        partitions=topic.partitions,
        unknown_id=UnknownId(declared.unknown_id.value),
        object_url=declared.object_url,
        heartbeat=declared.heartbeat.total_seconds(),
        checkpoint=declared.checkpoint.total_seconds(),
        max_age=declared.max_age.total_seconds(),
    )
    return open_streams(opened, chosen)


def open_streams(opened: OpenPipeline, settings: StreamSettings) -> Streams:
    """The streams of a pipeline. They connect on first use: without Cassandra, they send what Kafka has."""
    pipeline = opened.pipeline

    def control() -> LogControl:
        return LogControl(look_at_control(opened.connections), pipeline.name)

    def log(followed: FollowedTopic) -> LoggedBindings:
        folder = LogFolder(pipeline.name, pipeline.log.path)
        return LoggedBindings(control, folder, settings.topic, followed.topic_id, followed.partitions)

    return Streams(settings, KafkaTopic(settings.kafka, settings.topic), log, _objects(opened))


def _objects(opened: OpenPipeline) -> CollectionStore | None:
    """The pipeline's collection of objects; None where it declares none."""
    pipeline, connections = opened.pipeline, opened.connections
    for declared in pipeline.writers:
        if isinstance(declared, CollectionDeclaration) and declared.envelope == EnvelopeName.OPLOG:
            tables, control = connections.cassandra[declared.connection], connections.control
            chosen = CollectionSettings(pipeline, declared, tables, control)
            return CollectionStore(partial(chosen.open, READER))
    return None
