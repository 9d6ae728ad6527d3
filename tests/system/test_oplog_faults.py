"""Agents and the services below them, killed under load: streams have all that was acknowledged."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.support.services.agents import StartedAgent, operation
from tests.support.services.killed_services import kill_9, killed, silent
from tests.support.services.served_pipelines import ServedPipeline, served_pipeline
from tests.support.services.stream_copies import (
    FollowingClient,
    OpenStream,
    OperationSource,
    StreamCopy,
    changing,
)
from tests.support.waiting import wait_until

from tidemark.embedded.lifecycle import up

pytestmark = pytest.mark.system

ALONE = True
"""No other module can run while services are killed."""


@pytest.fixture(scope="module")
def served(services: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPipeline]:
    with served_pipeline(services, tmp_path_factory.mktemp("served"), heartbeat="2s") as made:
        yield made


@contextmanager
def load(url: str, name: str) -> Iterator[list[str]]:
    """Four senders that send until the block ends, whatever is answered; the keys that were acknowledged."""
    acknowledged, stop = list[str](), threading.Event()

    def send(sender: int) -> None:
        number = 0
        with httpx.Client(timeout=30) as client:
            while not stop.is_set():
                ids = [f"{name}-{sender}-{(number := number + 1)}" for _ in range(5)]
                body = b"\n".join(operation(id_) for id_ in ids)
                try:
                    answer = client.post(url, content=body, headers={"content-type": "application/x-ndjson"})
                except httpx.HTTPError:
                    stop.wait(0.05)
                    continue
                if answer.status_code == 204:
                    acknowledged.extend(f"video/{id_}" for id_ in ids)
                else:
                    stop.wait(0.05)

    senders = [threading.Thread(target=send, args=(sender,), daemon=True) for sender in range(4)]
    for sender in senders:
        sender.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        for sender in senders:
            sender.join(120)


@pytest.fixture
def steady(served: ServedPipeline) -> Iterator[StartedAgent]:
    """An agent that lives through a test."""
    with served.agents.agent() as agent:
        yield agent


def told(copy: StreamCopy) -> set[str]:
    return {key for _, key in copy.operations}


def begun(url: str) -> StreamCopy:
    """A client that was live and is away now."""
    copy = StreamCopy()
    copy.follow_once(url, lambda: copy.position)
    return copy


def test_an_agent_is_killed_under_load_and_the_stream_has_all_that_was_answered_with_204(
    served: ServedPipeline, steady: StartedAgent
) -> None:
    away = begun(steady.url)
    with FollowingClient(lambda: steady.url, begun(steady.url)) as there:
        with served.agents.agent() as agent, load(agent.url, "killed") as acknowledged:
            wait_until(lambda: len(acknowledged) > 1_000, what="load")
            agent.kill()
        wait_until(lambda: set(acknowledged) <= told(there.copy), 30, "the rest of the stream")
        assert there.ended == 0, "a client of another agent was disturbed"
    # A client of an agent that begins now, which reads what it missed.
    with served.agents.agent() as next_one:
        away.follow_once(next_one.url, lambda: set(acknowledged) <= told(away))
    assert away.modes == ["live", "exact"]
    assert away.operations == there.copy.operations


def test_an_agent_is_killed_under_a_load_of_datagrams_and_the_stream_has_what_it_has_counted(
    served: ServedPipeline, steady: StartedAgent
) -> None:
    with FollowingClient(lambda: steady.url, begun(steady.url)) as there, served.agents.agent() as agent:

        def send(number: int) -> None:
            agent.send_datagrams(*(operation(f"datagram-{number}-{one}") for one in range(20)))

        with changing(send) as sent:
            counted = wait_until(
                lambda: found if (found := agent.status)["events_ingested"] > 1_000 else None
            )
            agent.kill()
        wait_until(lambda: len(there.copy.operations) >= counted["events_ingested"], 30, "what was counted")
    keys = [key for _, key in there.copy.operations]
    assert len(set(keys)) == len(keys) <= sent() * 20
    figures = ("events_ingested", "events_error", "events_discarded", "events_failed", "queue_size")
    total = sum(counted[name] for name in (*figures, "events_in_flight"))
    assert counted["events_received"] == total


def test_H4_kafka_is_killed_under_load_and_everything_goes_on_by_itself(
    services: Any, steady: StartedAgent
) -> None:
    away, client = begun(steady.url), begun(steady.url)
    with FollowingClient(lambda: steady.url, client), load(steady.url, "restart") as acknowledged:
        wait_until(lambda: len(acknowledged) > 500, what="load")
        kill_9(services.settings, "kafka")
        wait_until(lambda: steady.status["status"] == "degraded", what="the notice that Kafka is away")
        up(services.settings, ["kafka"])
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before + 500, what="operations to be taken again")
        assert steady.process.poll() is None
    for copy in (client, away):
        wait_until(lambda copy=copy: not missing(copy, steady, acknowledged), 20, "the rest of the stream")
    wait_until(lambda: steady.status["status"] == "OK", what="the agent to be well again")
    assert set(client.modes[1:]) == {"exact"}


def missing(copy: StreamCopy, agent: StartedAgent, acknowledged: list[str]) -> set[str]:
    """What a client lacks after it has come back once more."""
    if left := set(acknowledged) - told(copy):
        copy.follow_once(agent.url, lambda: left <= told(copy))
    return left - told(copy)


@pytest.mark.parametrize("how", [killed, silent])
def test_cassandra_is_away_live_goes_on_replication_answers_503_and_comes_back(
    services: Any, served: ServedPipeline, steady: StartedAgent, how: Callable[[Any, str], Any]
) -> None:
    source = OperationSource(steady.url)
    source.put("before")
    served.replicate()
    fresh = begun(steady.url)
    with FollowingClient(lambda: steady.url, begun(steady.url)) as live:
        with how(services, "cassandra"):
            source.put("during")
            wait_until(lambda: "video/during" in told(live.copy), 10, "the live stream")
            for id_ in ("0", "1", "545b4f8ef095528dd0f3863b"):
                assert status_of(steady, id_) == 503
            assert httpx.get(f"{steady.url}/health", timeout=60).status_code == 503
            fresh.follow_once(steady.url, lambda: "video/during" in told(fresh))
            assert fresh.modes[-1] == "exact"
        wait_until(lambda: status_of(steady, "0") == 200, what="a replication")
        source.put("after")
        wait_until(lambda: "video/after" in told(live.copy), 10, "the live stream")
        assert live.ended == 0, "the live stream was interrupted"
    wait_until(lambda: httpx.get(f"{steady.url}/health", timeout=60).status_code == 200, what="health")


def status_of(agent: StartedAgent, id_: str) -> int:
    """The status of the answer to a request for a stream."""
    stream = OpenStream(agent.url, id_)
    stream.close()
    return stream.status
