"""Item 24: ``tidemark status`` warns where one node's loss would lose a journal."""

import pytest

from tidemark.app import copies
from tidemark.app.copies import copies_warnings
from tidemark.cassandra.session import CassandraUnreachable
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.pipeline.loader import find_pipeline

pytestmark = pytest.mark.unit

HERE = CassandraConnection(hosts=("127.0.0.1",), port=1)
CONNECTIONS = Connections(kafka=KafkaConnection(servers="x:1"), cassandra={"cassandra_default": HERE})


def test_i24_every_keyspace_of_a_journal_is_looked_at(monkeypatch):
    monkeypatch.setattr(copies, "connect", lambda connection: connection)
    monkeypatch.setattr(copies, "too_few_copies", lambda session, keyspace: f"{keyspace} has one copy")
    assert copies_warnings(find_pipeline("orders"), CONNECTIONS) == ["journal has one copy"]


def test_i24_nothing_is_said_where_all_is_well(monkeypatch):
    monkeypatch.setattr(copies, "connect", lambda connection: connection)
    monkeypatch.setattr(copies, "too_few_copies", lambda session, keyspace: None)
    assert copies_warnings(find_pipeline("orders"), CONNECTIONS) == []


def test_a_cluster_that_does_not_answer_keeps_nothing_from_being_shown(monkeypatch):
    def refuse(connection):
        raise CassandraUnreachable("127.0.0.1:9042", "refused")

    monkeypatch.setattr(copies, "connect", refuse)
    (said,) = copies_warnings(find_pipeline("orders"), CONNECTIONS)
    assert said.startswith("how many copies keyspace journal has could not be looked at: Cassandra does not")
