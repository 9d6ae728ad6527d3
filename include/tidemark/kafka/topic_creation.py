"""Creates the topics that a pipeline needs where they are missing.

Topics are described before and after; ``topic_shape`` judges them. A topic is created with
``cleanup.policy=delete``, whatever the broker's default is. An existing topic is never changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from tidemark.connections import KafkaConnection
from tidemark.errors import TidemarkError, with_fields
from tidemark.kafka.admin import admin_client
from tidemark.kafka.errors import KafkaFailure
from tidemark.kafka.topic_shape import CreationOutcome, TopicFound, TopicOutcome, TopicShape, judge

BROKERS_DEFAULT = -1
"""The protocol's number for the broker's default."""
_ALREADY_THERE = 36
_POLICY, _RETENTION, _TIMESTAMPS = "cleanup.policy", "retention.ms", "message.timestamp.type"


@with_fields
class TopicsUnreachable(TidemarkError):
    """A request about topics failed, so that their state is unknown."""

    pipeline: str
    servers: str
    reason: str

    text = (
        "{pipeline}: Kafka at {servers} did not answer ({reason}). Whether topics were created is not known: "
        "run the same command again, it leaves alone what is there."
    )


def create_topics(
    pipeline: str, connection: KafkaConnection, wanted: Mapping[str, TopicShape]
) -> list[TopicOutcome]:
    """Create the missing topics. Returns the outcome of each topic, in the given order."""
    with _admin(pipeline, connection) as admin:
        before = _describe(admin, wanted)
        missing = {name: _request(shape) for name, shape in wanted.items() if name not in before}
        failures: dict[str, str] = {}
        if missing:
            answer = admin.create_topics(missing, raise_errors=False, wait_for_metadata=False)
            failures = dict(_failures(answer["topics"]))
            made = [name for name in missing if name not in failures]
            if made:
                admin.wait_for_topics(made)
        after = _describe(admin, wanted)
    return [_outcome(name, shape, before, after, failures) for name, shape in wanted.items()]


def missing_topics(pipeline: str, connection: KafkaConnection, topics: Iterable[str]) -> list[str]:
    """The topics that do not exist, of the given ones."""
    with _admin(pipeline, connection) as admin:
        existing = set(admin.list_topics())
    return [topic for topic in topics if topic not in existing]


def _outcome(
    name: str,
    shape: TopicShape,
    before: Mapping[str, TopicFound],
    after: Mapping[str, TopicFound],
    failures: Mapping[str, str],
) -> TopicOutcome:
    if name in before:
        return judge(before[name], shape)
    if name in failures:
        if name in after:  # created by another process meanwhile
            return judge(after[name], shape)
        problem = (
            f"Kafka refused: {failures[name].rstrip('.')}. Nothing was created; correct it and try again."
        )
        return TopicOutcome(name, CreationOutcome.REFUSED, None, problem)
    return TopicOutcome(name, CreationOutcome.CREATED, after.get(name))


def _request(shape: TopicShape) -> dict[str, Any]:
    configs = {_POLICY: "delete"}
    if shape.retention_ms is not None:
        configs[_RETENTION] = str(shape.retention_ms)
    if shape.timestamps is not None:
        configs[_TIMESTAMPS] = shape.timestamps.value
    return {
        "num_partitions": shape.partitions or BROKERS_DEFAULT,
        "replication_factor": shape.replication or BROKERS_DEFAULT,
        "configs": configs,
    }


def _failures(answers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for answer in answers:
        if code := answer["error_code"]:
            reason = "it exists already" if code == _ALREADY_THERE else f"error {code}"
            yield answer["name"], answer["error_message"] or reason


def _describe(admin: KafkaAdminClient, topics: Iterable[str]) -> dict[str, TopicFound]:
    existing = set(admin.list_topics())  # describing a missing topic could create it
    there = [topic for topic in topics if topic in existing]
    if not there:
        return {}
    asked = [_POLICY, _RETENTION, _TIMESTAMPS]
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, asked) for topic in there]
    configs = admin.describe_configs(resources, config_filter="all").get("topic", {})
    return {
        topic["name"]: TopicFound(
            topic["name"],
            len(topic["partitions"]),
            min((len(one["replica_nodes"]) for one in topic["partitions"]), default=0),
            int(configs[topic["name"]][_RETENTION]["value"]),
            str(configs[topic["name"]][_POLICY]["value"]),
            str(configs[topic["name"]][_TIMESTAMPS]["value"]),
        )
        for topic in admin.describe_topics(there)
        if not topic["error_code"]
    }


@contextmanager
def _admin(pipeline: str, connection: KafkaConnection) -> Iterator[KafkaAdminClient]:
    try:
        with admin_client(connection) as admin:
            yield admin
    except KafkaFailure as error:
        raise TopicsUnreachable(pipeline, connection.servers, error.reason) from error
