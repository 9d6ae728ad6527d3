"""An agent that takes operations in, on a real Kafka: nothing that was acknowledged is lost."""

import json
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.services.agents import (
    JSON_HEADERS,
    AgentPipeline,
    agent_pipeline,
    keyspace_of,
    operation,
)
from tests.support.services.broker import stalled
from tests.support.waiting import wait_until

from tidemark.cassandra.session import connect
from tidemark.kafka.partitioning import key_hash

pytestmark = pytest.mark.system

ONLY = "--ingest-only"
HEAD = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture
def pipeline(services: Any, tmp_path: Path) -> Iterator[AgentPipeline]:
    with agent_pipeline(services, tmp_path) as made:
        yield made


def test_r2_h1_the_topic_is_created_and_204_means_that_it_has_the_operation(pipeline: AgentPipeline) -> None:
    with pipeline.agent(ONLY) as agent:
        assert [agent.post(f"{number}") for number in range(20)] == [204] * 20
        found = pipeline.records()
    assert sorted(int(message.key().removeprefix(b"video/")) for message in found) == list(range(20))
    assert {message.partition() for message in found} == {key_hash(message.key()) % 4 for message in found}
    assert json.loads(found[0].value()).keys() == {"event", "timestamp", "parents", "type", "id"}


def test_killed_under_load_it_loses_nothing_that_was_acknowledged_by_http(pipeline: AgentPipeline) -> None:
    acknowledged: list[str] = []
    with pipeline.agent(ONLY) as agent:

        def send(sender: int) -> None:
            with httpx.Client(base_url=agent.url, timeout=60) as client:
                for number in range(100_000):
                    lines = [operation(f"{sender}-{number}-{line}") for line in range(5)]
                    try:
                        headers = {"content-type": "application/x-ndjson"}
                        answer = client.post("/", content=b"\n".join(lines), headers=headers)
                    except httpx.HTTPError:
                        return
                    if answer.status_code == 204:
                        acknowledged.extend(f"{sender}-{number}-{line}" for line in range(5))

        senders = [threading.Thread(target=send, args=(sender,)) for sender in range(4)]
        for sender in senders:
            sender.start()
        wait_until(lambda: len(acknowledged) > 2_000, what="load")
        agent.kill()
        for sender in senders:
            sender.join(120)
    assert set(acknowledged) <= set(pipeline.ids())


def test_r37_r38_datagrams_are_counted_and_the_good_ones_are_in_the_topic(pipeline: AgentPipeline) -> None:
    with pipeline.agent(ONLY) as agent:
        for first in range(0, 2_000, 100):
            agent.send_datagrams(*(operation(f"{number}") for number in range(first, first + 100)), b"{", b"")
            done = (first // 100 + 1) * 102
            wait_until(lambda done=done: agent.status["events_received"] == done, what=f"{done} datagrams")
        wait_until(lambda: agent.status["events_ingested"] == 2_000, what="acknowledgements")
        status = agent.status
        assert (status["events_error"], status["events_discarded"], status["events_failed"]) == (40, 0, 0)
        assert (status["queue_size"], status["events_in_flight"], status["udp_kernel_drops"]) == (0, 0, 0)
        assert status["status"] == "OK"
    assert sorted(map(int, pipeline.ids())) == list(range(2_000))


def test_asked_to_stop_it_sends_what_it_has_taken(pipeline: AgentPipeline) -> None:
    with pipeline.agent(ONLY) as agent:
        agent.send_datagrams(*(operation(f"{number}") for number in range(1_000)))
        assert agent.stop() == 0, agent.log.read_text()
    assert sorted(map(int, pipeline.ids())) == list(range(1_000))


def test_h4_while_kafka_is_away_operations_wait_and_it_recovers_by_itself(
    services: Any, tmp_path: Path
) -> None:
    with agent_pipeline(services, tmp_path, queue=500) as pipeline, pipeline.agent(ONLY) as agent:
        assert agent.post("first") == 204
        with stalled(services):
            agent.send_datagrams(*(operation(f"{number}") for number in range(800)))
            status = wait_until(lambda: found if (found := agent.status)["events_discarded"] == 300 else None)
            assert status["queue_size"] + status["events_in_flight"] == 500
            wait_until(lambda: agent.status["status"] == "degraded", what="the notice that Kafka is away")
            assert agent.post("refused") == 503
            assert httpx.get(f"{agent.url}/health", timeout=60).status_code == 503
        wait_until(lambda: agent.status["events_ingested"] == 501, what="what waited, in Kafka")
        assert agent.post("last") == 204
        assert sorted(pipeline.ids()) == sorted(["first", *map(str, range(500)), "last"])


def test_a_topic_with_more_partitions_gets_operations_where_it_got_them_before(
    services: Any, pipeline: AgentPipeline
) -> None:
    from kafka import KafkaAdminClient

    with pipeline.agent(ONLY) as agent:
        assert [agent.post(f"{number}") for number in range(20)] == [204] * 20
        with KafkaAdminClient(**services.kafka.client_options()) as admin:
            admin.create_partitions({pipeline.name: 6})
        wait_until(lambda: agent.status["problems"], what="the notice of more partitions")
        assert [agent.post(f"{number}") for number in range(20)] == [204] * 20
        places = {(message.key(), message.partition()) for message in pipeline.records()}
    assert len(places) == 20


def test_5000_connections_take_bounded_memory_and_others_are_served(pipeline: AgentPipeline) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 20_000), most))
    with pipeline.agent(ONLY, "--udp", "closed") as agent:
        assert agent.post("before") == 204
        before, kept = agent.resident, []
        try:
            for number in range(5_000):
                kept.append(connection := agent.connect())
                if number % 3:  # of the others, half say nothing and half begin a body that never ends
                    connection.sendall(_slow_body())
            assert agent.post("during") == 204
            assert agent.resident - before < 5_000 * 40_000
        finally:
            for connection in kept:
                connection.close()
        wait_until(lambda: agent.status["http_connections"] <= 2, what="the end of the connections")
        assert agent.post("after") == 204


def _slow_body() -> bytes:
    return HEAD % b"application/json" + b"1000\r\n" + b" " * 4_096 + b"\r\n"


def test_large_bodies_that_never_end_are_bounded_together(pipeline: AgentPipeline) -> None:
    head = HEAD % b"application/x-ndjson"
    with pipeline.agent(ONLY) as agent:
        assert agent.post("before") == 204
        before, kept = agent.resident, []
        try:
            for _ in range(200):
                kept.append(connection := agent.connect())
                try:
                    connection.sendall(head + b"%x\r\n" % 900_000 + b" " * 900_000)
                except (BrokenPipeError, ConnectionResetError):
                    continue  # refused, because the others have the budget
            assert agent.post("during") == 204
            assert agent.resident - before < 150_000_000
        finally:
            for connection in kept:
                connection.close()


def test_h9_tokens_come_from_the_environment_or_a_connection(pipeline: AgentPipeline) -> None:
    tokens = {"extra": {"senders": {"cms": "token-of-the-cms"}}}
    environ = {
        "OPLOGD_INGEST_PASSWORD": "token-of-the-shop",
        "OPLOGD_TOKENS": "oplog_tokens",
        "AIRFLOW_CONN_OPLOG_TOKENS": json.dumps(tokens),
    }
    with pipeline.agent(ONLY, **environ) as agent:
        given = [{}, *({"authorization": f"Bearer token-of-the-{owner}"} for owner in ("cms", "shop"))]
        statuses = [
            httpx.post(agent.url, content=operation("x"), headers=JSON_HEADERS | one, timeout=60).status_code
            for one in given
        ]
        assert statuses == [401, 204, 204]
        assert "token-of" not in agent.log.read_text()


def test_a_second_agent_on_the_same_address_is_refused_and_the_first_goes_on(pipeline: AgentPipeline) -> None:
    with pipeline.agent(ONLY) as agent:
        second = pipeline.agent(ONLY, "--listen", f"127.0.0.1:{agent.port}")
        with pytest.raises(AssertionError, match="cannot listen"), second:
            pass
        assert agent.post("after") == 204


def test_r2_r3_an_agent_creates_its_collection_and_streams_what_another_one_took_in(
    services: Any, pipeline: AgentPipeline
) -> None:
    with pipeline.agent() as one, pipeline.agent(ONLY) as other:
        accept = {"accept": "text/event-stream"}
        with httpx.stream("GET", one.url, headers=accept, timeout=60) as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("data: ")) == 'data: {"mode":"live"}'
            assert other.post("x1") == 204
            data = next(line for line in lines if line.startswith("data: "))
            assert json.loads(data.removeprefix("data: "))["id"] == "x1"
            assert one.status["clients"] == 1
        assert httpx.get(f"{one.url}/health", timeout=60).status_code == 200
        tables = connect(services.cassandra).cluster.metadata.keyspaces[keyspace_of(pipeline.name)].tables
        assert "objects" in tables
        assert one.stop() == 0, one.log.read_text()
