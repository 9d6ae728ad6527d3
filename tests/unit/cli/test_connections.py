"""Connections for the command line: Airflow's variables first, then the embedded services."""

import pytest

from tidemark.cli.connections import look_up
from tidemark.connections import BadConnection, CassandraConnection, KafkaConnection

pytestmark = pytest.mark.unit


def given_embedded_services(installation) -> None:
    (installation / ".tidemark").mkdir()
    (installation / ".tidemark" / ".tidemark-home").touch()


def test_a_variable_comes_first(installation, monkeypatch):
    given_embedded_services(installation)
    monkeypatch.setenv("AIRFLOW_CONN_CASSANDRA_DEFAULT", "cassandra://elsewhere:9142")
    assert look_up("cassandra_default") == {"host": "elsewhere", "port": 9142, "extra": {}}


def test_the_embedded_services_come_next(installation, monkeypatch):
    given_embedded_services(installation)
    monkeypatch.setenv("TIDEMARK_CASSANDRA_PORT", "19042")
    monkeypatch.setenv("TIDEMARK_KAFKA_PORT", "19092")
    cassandra = CassandraConnection.from_airflow("cassandra_default", look_up("cassandra_default"))
    kafka = KafkaConnection.from_airflow("kafka_default", look_up("kafka_default"))
    assert (cassandra.hosts, cassandra.port, kafka.servers) == (("127.0.0.1",), 19042, "127.0.0.1:19092")


@pytest.mark.usefixtures("installation")
def test_an_unknown_connection_is_refused_with_what_to_do():
    with pytest.raises(BadConnection, match=r"AIRFLOW_CONN_CASSANDRA_FAR, or start .*: tidemark services up"):
        look_up("cassandra_far")


def test_a_connection_the_embedded_services_do_not_have_is_refused(installation):
    given_embedded_services(installation)
    with pytest.raises(BadConnection, match=r"^Connection cassandra_far: is not known here"):
        look_up("cassandra_far")
