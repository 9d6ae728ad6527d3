"""Topics that do not exist yet: what a run says of them, and the command that creates them (items 15, 23)."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient

from tidemark.app.replicate import begin_run
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.kafka.topic_creation import create_topics
from tidemark.kafka.topic_shape import FOREVER, CreationOutcome, TopicShape
from tidemark.log.source import NoSuchTopic
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import Pipeline

pytestmark = pytest.mark.system


@pytest.fixture
def name(services: Any) -> Iterator[str]:
    """A name of its own for a pipeline and its topics; they are removed afterwards."""
    own = f"topics-{uuid4().hex[:12]}"
    yield own
    with KafkaAdminClient(**services.kafka.client_options()) as admin:
        if left := [topic for topic in admin.list_topics() if topic.startswith(own)]:
            admin.delete_topics(left)
    LogControl(open_control(connections_of(services)), own).forget_bindings()


def given_pipeline(name: str, **kafka: Any) -> Pipeline:
    writer = {"name": "archive", "kind": "files", "path": f"/tmp/{name}"}
    return Pipeline.model_validate({"name": name, "source": {"kafka": kafka}, "writers": [writer]})


def connections_of(services: Any) -> Connections:
    return Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})


def test_i23_topics_are_created_as_they_are_asked_for_and_never_changed(services: Any, name: str) -> None:
    wanted = {f"{name}.a": TopicShape(3, 1, FOREVER), f"{name}.b": TopicShape()}

    created = create_topics("shop", services.kafka, wanted)
    again = create_topics("shop", services.kafka, wanted)
    other = create_topics("shop", services.kafka, {f"{name}.a": TopicShape(partitions=6)})

    assert [one.outcome for one in created] == [CreationOutcome.CREATED, CreationOutcome.CREATED]
    assert created[0].found.said == "3 partitions, 1 copy, records for ever"
    assert {one.found.cleanup_policy for one in created} == {"delete"}
    assert [(one.outcome, one.problem) for one in again] == [(CreationOutcome.EXISTS, None)] * 2
    assert "has 3 partitions instead of 6; it was not changed" in other[0].problem
    assert create_topics("shop", services.kafka, {f"{name}.a": TopicShape()})[0].found.partitions == 3


def test_i23_what_kafka_does_not_take_is_one_sentence_and_the_others_are_created(
    services: Any, name: str
) -> None:
    services.create_topic(f"{name}.compacted", **{"cleanup.policy": "compact"})
    wanted = {
        f"{name}.many": TopicShape(replication=5),
        f"{name}.compacted": TopicShape(),
        f"{name}.good": TopicShape(1, 1),
    }

    many, compacted, good = create_topics("shop", services.kafka, wanted)

    assert (many.outcome, compacted.outcome, good.outcome) == (
        CreationOutcome.REFUSED,
        CreationOutcome.REFUSED,
        CreationOutcome.CREATED,
    )
    assert "Kafka refused: " in many.problem
    assert "cleanup.policy=compact" in compacted.problem


def test_i15_a_run_without_its_topic_fails_at_once_with_the_command(services: Any, name: str) -> None:
    pipeline, begun = given_pipeline(name, topics=[name]), time.monotonic()
    with pytest.raises(NoSuchTopic, match=f"Create it with: tidemark topics create {name};") as failed:
        begin_run(pipeline, connections_of(services), "run-1", retry=False)
    assert failed.value.needs_person
    assert time.monotonic() - begun < 20


def test_i15_a_run_whose_prefixes_match_nothing_has_nothing_to_do(services: Any, name: str) -> None:
    pipeline = given_pipeline(name, topic_prefixes=[name])
    plan = begin_run(pipeline, connections_of(services), "run-1", retry=False)
    assert (plan.t, plan.deliver, plan.stopped) == (None, False, False)
