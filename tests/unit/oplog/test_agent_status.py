"""``/status`` and ``/metrics`` of a whole agent."""

import json
import re

import httpx
import pytest
from tests.support.running_agent import running_agent
from tests.support.waiting import wait_until

from tidemark.oplog.agent.errors import OperationsGivenUp
from tidemark.oplog.agent.server.status import COUNTERS, GAUGES, metrics, stream_figures
from tidemark.oplog.agent.server.tokens import AgentToken, TokenRole, digest_of
from tidemark.oplog.agent.streams.service import StreamFigures

pytestmark = pytest.mark.unit

GOOD = json.dumps({"event": "insert", "parents": [], "type": "video", "id": "x1"}).encode()
TOKEN = AgentToken("shop", digest_of("hunter2-hunter2"), frozenset(TokenRole))


def test_r36_to_r42_status_has_the_fields_of_the_contract():
    with running_agent() as agent:
        answer = httpx.get(f"{agent.url}/status")
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert {name: found[name] for name in ("status", "queue_size", "queue_max_size", "clients")} == {
        "status": "OK",
        "queue_size": 0,
        "queue_max_size": 100_000,
        "clients": 0,
    }
    names = {"received", "ingested", "error", "discarded", "failed", "sent"}
    assert {f"events_{name}" for name in names} <= found.keys()


def test_every_operation_is_counted_in_one_place():
    with running_agent(queue=3) as agent:
        agent.producer.acknowledges = False
        with httpx.Client(base_url=agent.url) as client:
            for body in (b"{", b"[]"):
                client.post("/", content=body, headers={"content-type": "application/json"})
        found = wait_until(lambda: status if (status := agent.status)["events_error"] == 2 else None)
    done = sum(found[f"events_{name}"] for name in ("ingested", "error", "discarded", "failed", "in_flight"))
    assert found["events_received"] == done + found["queue_size"]


def test_c26_no_figure_has_a_secret():
    with running_agent(tokens=(TOKEN,)) as agent:
        headers = {"authorization": "Bearer hunter2-hunter2"}
        for path in ("/status", "/metrics"):
            answer = httpx.get(agent.url + path, headers=headers)
            assert answer.status_code == 200
            assert not re.search(r"hunter2|authorization|shop\"?:", answer.text)


def test_metrics_have_every_figure_once_and_in_prometheus_text():
    status = dict.fromkeys((*COUNTERS, *GAUGES), 1) | {"status": "OK", "stream_is_live": True}
    lines = metrics(status).decode().splitlines()
    values = [line for line in lines if not line.startswith("#")]
    assert len(values) == len({line.split()[0] for line in values}) == len(COUNTERS) + len(GAUGES) + 1
    assert all(re.fullmatch(r"tidemark_oplog_[a-z_]+ [0-9.]+", line) for line in values)


def test_figures_of_streams_do_not_hide_those_of_ingest():
    found = stream_figures(StreamFigures(received=3, connections=2))
    assert (found["stream_records"], found["connections"]) == (3, 2)
    assert "received" not in found


def test_an_agent_that_cannot_send_what_it_has_says_so_when_it_stops():
    with running_agent() as agent:
        agent.producer.acknowledges = False
        agent.loop.call_soon_threadsafe(agent.process._intake.take_datagram, GOOD, 0)
        wait_until(lambda: agent.status["events_in_flight"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tidemark.oplog.agent.process.DRAINED_WITHIN", 0.1)
            agent.stop()
            wait_until(agent.loop.is_closed)
    (failure,) = agent.failure
    assert (type(failure), failure.count) == (OperationsGivenUp, 1)
