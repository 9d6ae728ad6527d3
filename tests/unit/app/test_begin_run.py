"""The first step of a run: what it refuses at once, and with which advice (items 13 and 15)."""

import pytest

from tidemark.app import replicate
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.model.binding import Available
from tidemark.log.source import NoSuchTopic
from tidemark.log.state.control import LogControl
from tidemark.log.state.forgotten import BeingForgotten, Forgetting, begin_forgetting
from tidemark.pipeline.model import Pipeline

pytestmark = pytest.mark.unit

CONNECTIONS = Connections(
    kafka=KafkaConnection(servers="nowhere:1"),
    cassandra={"cassandra_default": CassandraConnection(hosts=("nowhere",))},
)


def given_pipeline(**kafka):
    writer = {"name": "archive", "kind": "files", "path": "/data/archive"}
    return Pipeline.model_validate({"name": "shop", "source": {"kafka": kafka}, "writers": [writer]})


@pytest.fixture
def control(monkeypatch):
    """The control plane of a run; Kafka has no topic at all."""
    consensus = MemoryConsensus()
    monkeypatch.setattr(replicate, "open_control", lambda connections: consensus)
    monkeypatch.setattr(replicate, "connect", lambda connection: None)
    monkeypatch.setattr(replicate, "server_time", lambda session: replicate.wall_clock())

    def read(topics, kafka):
        if topics.topics:
            raise NoSuchTopic(topics.pipeline, topics.topics[0])
        return Available({}, {})

    monkeypatch.setattr(replicate, "read_available", read)
    return LogControl(consensus, "shop")


def begin(pipeline):
    return replicate.begin_run(pipeline, CONNECTIONS, "run-1", retry=False)


def test_i15_a_topic_that_does_not_exist_fails_at_once_with_the_command_that_creates_it(control):
    with pytest.raises(
        NoSuchTopic, match="Create it with: tidemark topics create shop; or correct"
    ) as failed:
        begin(given_pipeline(topics=["sales"]))
    assert (failed.value.needs_person, failed.value.was_read) == (True, False)


def test_i15_prefixes_that_match_nothing_are_a_run_with_nothing_to_do(control):
    plan = begin(given_pipeline(topic_prefixes=["eu."]))
    assert (plan.t, plan.deliver) == (None, False)


def test_a_topic_that_was_read_and_is_gone_is_not_advised_to_be_created(control):
    control.start_from(control.bindings_head(), {("sales", 0): 7})
    with pytest.raises(
        NoSuchTopic, match="has no topic sales any more, and this pipeline has read it"
    ) as gone:
        begin(given_pipeline(topics=["sales"]))
    assert gone.value.needs_person
    assert "topics create" not in str(gone.value)


def test_i13_a_pipeline_whose_removal_has_begun_binds_nothing(control):
    begin_forgetting(control, Forgetting("ann", "over", 1_000_000))
    with pytest.raises(BeingForgotten, match="tidemark pipelines forget shop --execute") as refused:
        begin(given_pipeline(topic_prefixes=["eu."]))
    assert refused.value.needs_person
    assert control.bindings_head().upper == 0
