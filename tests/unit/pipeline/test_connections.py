"""Which connections a pipeline needs."""

import pytest

from tidemark.connections import BadConnection
from tidemark.pipeline.connections import collect_connections
from tidemark.pipeline.model import Pipeline

pytestmark = pytest.mark.unit

KNOWN = {
    "kafka_default": {"extra": {"bootstrap.servers": "near:9092"}},
    "kafka_far": {"extra": {"bootstrap.servers": "far:9092"}},
    "cassandra_default": {"host": "control"},
    "cassandra_far": {"host": "far"},
}


def given_pipeline(kafka: str = "kafka_default", writers: list[dict[str, str]] | None = None) -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "orders",
            "source": {"kafka": {"topics": ["orders"], "connection": kafka}},
            "writers": writers or [{"name": "archive", "kind": "files", "path": "/archive"}],
        },
        context={"TIDEMARK_HOME": "/home/tidemark"},
    )


def journal(name: str, connection: str) -> dict[str, str]:
    return {"name": name, "kind": "journal", "keyspace": name, "connection": connection}


def test_every_pipeline_needs_kafka_and_the_control_plane():
    connections = collect_connections(given_pipeline(), KNOWN.__getitem__)
    assert connections.kafka.servers == "near:9092"
    assert connections.control.hosts == ("control",)


def test_a_pipeline_may_have_a_kafka_of_its_own():
    assert collect_connections(given_pipeline("kafka_far"), KNOWN.__getitem__).kafka.servers == "far:9092"


def test_a_journal_may_have_a_cluster_of_its_own():
    pipeline = given_pipeline(writers=[journal("near", "cassandra_default"), journal("far", "cassandra_far")])
    connections = collect_connections(pipeline, KNOWN.__getitem__)
    assert {name: c.hosts for name, c in connections.cassandra.items()} == {
        "cassandra_default": ("control",),
        "cassandra_far": ("far",),
    }


def test_the_control_plane_is_needed_even_when_no_writer_uses_it():
    pipeline = given_pipeline(writers=[journal("far", "cassandra_far")])
    assert collect_connections(pipeline, KNOWN.__getitem__).control.hosts == ("control",)


def test_a_kafka_writer_may_republish_to_a_kafka_of_its_own():
    writers = [
        {"name": "near", "kind": "kafka", "topic": "copy"},
        {"name": "far", "kind": "kafka", "topic": "copy", "connection": "kafka_far"},
    ]
    connections = collect_connections(given_pipeline(writers=writers), KNOWN.__getitem__)
    assert {name: c.servers for name, c in connections.kafka_targets.items()} == {
        "kafka_default": "near:9092",
        "kafka_far": "far:9092",
    }
    assert connections.kafka.servers == "near:9092"


def test_nothing_else_is_looked_up():
    asked = []
    collect_connections(given_pipeline(), lambda name: asked.append(name) or KNOWN[name])
    assert sorted(asked) == ["cassandra_default", "kafka_default"]


def test_a_bad_connection_is_refused_by_name():
    with pytest.raises(BadConnection, match=r"^Connection kafka_far: "):
        collect_connections(given_pipeline("kafka_far"), lambda name: {"host": "x"})
