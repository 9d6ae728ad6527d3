"""Connections come from Airflow, in the form that the library reads."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.unit


def test_a_connection_is_looked_up_in_airflow(monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW_CONN_OURS", '{"conn_type": "cassandra", "host": "one,two", "login": "ann", "port": 9043}'
    )
    from tidemark_airflow.connections import look_up

    found = look_up("ours")
    assert (found["host"], found["login"], found["port"]) == ("one,two", "ann", 9043)


def test_a_pipeline_is_opened_with_its_connections(monkeypatch):
    from tidemark.pipeline import loader
    from tidemark_airflow import connections

    declared, reached = SimpleNamespace(name="orders"), object()
    monkeypatch.setattr(loader, "find_pipeline", lambda name: declared)
    monkeypatch.setattr(connections, "pipeline_connections", lambda pipeline: reached)
    opened = connections.open_pipeline("orders")
    assert (opened.pipeline, opened.connections) == (declared, reached)


def test_a_pipeline_is_opened_with_its_engine_where_that_is_asked_for(monkeypatch):
    from tidemark.pipeline import loader
    from tidemark_airflow import connections

    declared, reached = SimpleNamespace(name="orders"), object()
    monkeypatch.setattr(loader, "find_pipeline", lambda name: declared)
    monkeypatch.setattr(connections, "engine_connections", lambda pipeline: reached)
    assert connections.open_pipeline("orders", with_engine=True).connections is reached
