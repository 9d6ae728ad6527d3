"""``tidemark oplog serve`` and ``status``: what keeps an agent from starting, and what one says of itself."""

import json

import pytest
from tests.support.running_agent import running_agent

pytestmark = pytest.mark.unit

SHOP = """
name: shop
source: {kafka: {topics: [shop], format: oplog}}
agent: {tokens: oplog_tokens}
writers: [{name: objects, kind: collection, envelope: oplog}]
"""
KAFKA = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}})


@pytest.fixture
def shop(installation, monkeypatch) -> None:
    (installation / "include" / "pipelines" / "shop.yaml").write_text(SHOP)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", KAFKA)
    for name in ("OPLOGD_PIPELINE", "OPLOGD_LISTEN", "OPLOGD_PASSWORD", "OPLOGD_INGEST_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def test_serve_needs_a_pipeline(run, shop):
    ended = run("oplog", "serve")
    assert ended.code == 2
    assert "OPLOGD_PIPELINE" in ended.err


def test_a_pipeline_without_an_agent_is_one_sentence(run, shop):
    ended = run("oplog", "serve", "orders")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("orders has no agent: its file has no section `agent`.")


def test_h11_the_pipeline_may_come_from_the_environment(run, shop, monkeypatch):
    monkeypatch.setenv("OPLOGD_PIPELINE", "orders")
    assert run("oplog", "serve").err.startswith("orders has no agent")


def test_a_missing_connection_of_tokens_is_named(run, shop):
    ended = run("oplog", "serve", "shop")
    assert ended.code == 1
    assert ended.err.startswith("Connection oplog_tokens: is not known here.")


def test_tokens_that_are_wrong_are_not_shown(run, shop, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_OPLOG_TOKENS", json.dumps({"extra": {"readers": {"a": "hunter2"}}}))
    ended = run("oplog", "serve", "shop")
    assert (ended.code, "readers.a.token" in ended.err) == (1, True)
    assert "hunter2" not in ended.err


def test_an_option_that_no_file_could_have_is_refused(run, shop):
    ended = run("oplog", "serve", "shop", "--listen", "nowhere")
    assert ended.code == 1
    assert "`listen` is `nowhere`, which is not an address" in ended.err


def test_beyond_loopback_an_agent_needs_tokens(run, shop, installation):
    file = installation / "include" / "pipelines" / "shop.yaml"
    file.write_text(SHOP.replace("{tokens: oplog_tokens}", "{}"))
    ended = run("oplog", "serve", "shop", "--listen", "0.0.0.0:8042")
    assert ended.code == 1
    assert "other machines reach" in ended.err


def test_status_shows_the_figures_of_an_agent(run, shop):
    with running_agent() as agent:
        as_json, as_text = run("oplog", "status", agent.url, "--json"), run("oplog", "status", agent.url)
    assert (as_json.code, json.loads(as_json.out)["status"]) == (0, "OK")
    assert "events_received            0\n" in as_text.out


def test_status_of_an_agent_that_does_not_answer_is_one_sentence(run, shop, closed_port):
    ended = run("oplog", "status", f"http://127.0.0.1:{closed_port}")
    assert ended.code == 1
    assert ended.err.startswith(f"No agent answers at http://127.0.0.1:{closed_port} (ConnectError")


def test_what_is_no_agent_is_told(run, shop):
    with running_agent(tokens=()) as agent:
        ended = run("oplog", "status", f"{agent.url}/nothing")
    assert "404" in ended.err
