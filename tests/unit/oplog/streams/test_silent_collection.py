"""A collection that does not answer: clients that need it are refused in time, all others are served."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.support.memory_oplog import MemoryObjects
from tests.support.oplog_samples import operation
from tests.support.stream_clients import QUICK, StreamWorld, given_agent, in_loop

from tidemark.oplog.agent.server.health import HealthChecks
from tidemark.oplog.agent.streams import shared_sources

pytestmark = pytest.mark.unit

MANY = 40
T = 1_764_158_400_000_000


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While it is set, the collection answers nothing."""
    silent, answers = threading.Event(), threading.Event()
    newest = MemoryObjects.newest

    def waiting(objects: MemoryObjects) -> int:
        if silent.is_set():
            assert answers.wait(60), "the test has ended without an answer"
        return newest(objects)

    monkeypatch.setattr(MemoryObjects, "newest", waiting)
    monkeypatch.setattr(MemoryObjects, "check", lambda objects: waiting(objects) and None)
    monkeypatch.setattr(shared_sources, "PATIENCE", 0.1)
    silent.answers = answers  # type: ignore[attr-defined]
    yield silent
    answers.set()


@contextmanager
def ended(silence: threading.Event) -> Iterator[None]:
    """The collection answers again, whatever happens."""
    try:
        yield
    finally:
        silence.clear()
        silence.answers.set()  # type: ignore[attr-defined]


async def behind(world: StreamWorld) -> str:
    """The id of a client that has missed more than the agent keeps."""
    client = await world.opened()
    position = await client.leave()
    for number in range(20):
        world.topic.send(operation(f"x{number}"))
    await world.caught_up()
    return position


@in_loop
async def test_clients_that_need_kafka_only_are_served(silence: threading.Event) -> None:
    async with given_agent(settings=replace(QUICK, ring_events=4)) as world:
        position = await behind(world)
        silence.set()
        with ended(silence):
            for _ in range(MANY):
                world.connect("0")
            await world.turns(20)
            client = world.connect(position)
            await asyncio.wait_for(client.until(lambda: len(client.told) == 20), 10)
            assert client.headers["x-oplog-mode"] == "exact"


@in_loop
async def test_replications_are_refused_in_time_however_many_ask(silence: threading.Event) -> None:
    async with given_agent() as world:
        await world.opened()
        silence.set()
        with ended(silence):
            clients = [world.connect("0") for _ in range(MANY)]
            for client in clients:
                await asyncio.wait_for(client.until(lambda client=client: client.is_over), 10)
        assert {client.status for client in clients} == {503}
        assert b"Cassandra has not answered" in clients[-1].body
        await world.until(lambda: world.objects.held == [])
        assert (await world.opened("0")).status == 200


@in_loop
async def test_health_is_answered_in_time(silence: threading.Event) -> None:
    async with given_agent() as world:
        await world.opened()
        health = HealthChecks({"streams": world.streams.check})
        assert (await health.check()).is_good
        silence.set()
        with ended(silence):
            health = HealthChecks({"streams": world.streams.check})
            found = await asyncio.wait_for(health.check(), 10)
            assert not found.is_good


@in_loop
async def test_an_agent_that_stops_does_not_wait_for_it(silence: threading.Event) -> None:
    async with given_agent(settings=replace(QUICK, stall=0.1)) as world:
        await world.opened()
        silence.set()
        with ended(silence):
            for _ in range(MANY):
                world.connect("0")
            await asyncio.wait_for(world.streams.drain(), 10)


@pytest.mark.parametrize("takes_nothing", ["a slow client", "a client that has fallen behind"])
@in_loop
async def test_a_client_that_is_cut_off_ends_its_request(takes_nothing: str) -> None:
    settings = replace(QUICK, stall=0.1, ring_events=10, checkpoint=0.05)
    async with given_agent(settings=settings) as world:
        client = await world.opened()
        client.blocked.clear()
        for number in range(100 if "behind" in takes_nothing else 1):
            world.topic.send(operation(f"x{number}"))
        assert client.task is not None
        await asyncio.wait_for(client.task, 10)
        assert client.aborted
        assert world.streams.figures.slow == 1
