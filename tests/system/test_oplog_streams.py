"""Streams of an agent on a real topic, its commit log and its collection; without HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition
from tests.support.services.log_runs import declare_log
from tests.support.services.sync_runs import PARTITIONS, WRITER, SyncRuns
from tests.support.stream_clients import QUICK, StreamClient, in_loop

from tidemark.app.oplog_agent import open_streams
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.kafka.admin import delete_topic
from tidemark.operations.operation import EventName, ObjectOperation, encoded
from tidemark.oplog.agent.streams.requests import StreamRequest
from tidemark.oplog.agent.streams.service import Streams

pytestmark = pytest.mark.system

AT = 1_764_158_400


class AgentHere:
    """The streams of an agent in this process, and their clients."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.clients: list[StreamClient] = []

    async def opened(self, last_event_id: str | None = None) -> StreamClient:
        client = StreamClient()
        request = StreamRequest(last_event_id)
        client.task = asyncio.create_task(
            self.streams.serve(request, client.receive, client.send, client.abort)
        )
        self.clients.append(client)
        await client.until(lambda: client.events or client.is_over, 60)
        return client


@asynccontextmanager
async def agent(events: SyncRuns, ring_events: int = 4) -> AsyncIterator[AgentHere]:
    settings = replace(
        QUICK,
        pipeline=events.runs.name,
        topic=events.runs.name,
        kafka=events.runs.connections.kafka,
        partitions=PARTITIONS,
        ring_events=ring_events,
    )
    here = AgentHere(open_streams(events.opened, settings))
    await here.streams.start()
    try:
        yield here
    finally:
        await here.streams.drain()


@pytest.fixture
def events(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SyncRuns]:
    """A pipeline of the test's own, with an empty topic."""
    name = f"streams_{uuid4().hex[:8]}"
    services.create_topic(name, partitions=PARTITIONS)
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    source = f'topics: ["{name}"], format: oplog'
    yield SyncRuns(declare_log(tmp_path, name, connections, monkeypatch, source, writer=WRITER))
    delete_topic(services.kafka, name)
    connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


def send(events: SyncRuns, *ids: str, event: str = "insert") -> list[str]:
    """Operations; what a client is told of them."""
    events.send(*((id_, event, AT) for id_ in ids))
    return [f"{event} {id_}" for id_ in ids]


def send_aborted(events: SyncRuns, partition: int, count: int = 3) -> None:
    """A transaction that is aborted: offsets that no consumer sees."""
    options = events.runs.connections.kafka.librdkafka_options()
    producer = Producer({**options, "transactional.id": uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    one = ObjectOperation(EventName.INSERT, AT * 1000, (), "video", "aborted")
    for _ in range(count):
        producer.produce(events.runs.name, encoded(one), one.key, partition=partition)
    producer.flush(30)
    producer.abort_transaction(30)


def expire(events: SyncRuns, offsets: dict[int, int]) -> None:
    """What retention does: nothing before these offsets is left."""
    with KafkaAdminClient(**events.runs.connections.kafka.client_options()) as admin:
        admin.delete_records({TopicPartition(events.runs.name, number): at for number, at in offsets.items()})


async def told(client: StreamClient, count: int) -> list[str]:
    """The events of a client, once there are so many."""
    await client.until(lambda: len(client.told) >= count or client.is_over, 60)
    return client.told


async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.to_thread(work, *arguments)


@in_loop
async def test_R16_aborted_transactions_hold_up_neither_the_hub_nor_a_reader(events: SyncRuns) -> None:
    async with agent(events) as here:
        client = await here.opened()
        expected = await in_thread(send, events, "a", "b", "c", "d", "e", "f")
        await in_thread(send_aborted, events, 0)
        await in_thread(send_aborted, events, 1)
        assert sorted(await told(client, 6)) == expected

        # A reader has to get over an aborted tail too.
        again = await here.opened(client.events[0].id)
        assert sorted(await told(again, 6)) == expected
        later = await in_thread(send, events, "g", "h")
        assert sorted((await told(again, 8))[6:]) == later


@in_loop
async def test_R15_an_agent_that_starts_on_an_aborted_tail_is_live(events: SyncRuns) -> None:
    await in_thread(send, events, "a", "b")
    await in_thread(send_aborted, events, 0)
    async with agent(events) as here:
        client = await here.opened()
        assert client.status == 200
        expected = await in_thread(send, events, "c")
        assert await told(client, 1) == expected


@in_loop
async def test_R15_an_agent_that_starts_in_an_open_transaction_is_live(events: SyncRuns) -> None:
    options = events.runs.connections.kafka.librdkafka_options()
    producer = Producer({**options, "transactional.id": uuid4().hex})
    one = ObjectOperation(EventName.INSERT, AT * 1000, (), "video", "open")
    await in_thread(producer.init_transactions, 30)
    producer.begin_transaction()
    for number in range(PARTITIONS):
        producer.produce(events.runs.name, encoded(one), one.key, partition=number)
    await in_thread(producer.flush, 30)
    async with agent(events) as here:
        client = await here.opened()
        assert client.status == 200
        await in_thread(producer.commit_transaction, 30)
        assert await told(client, PARTITIONS) == ["insert open"] * PARTITIONS


@in_loop
async def test_R16_every_id_is_continued_exactly_by_the_next_agent(events: SyncRuns) -> None:
    async with agent(events) as here:
        client = await here.opened()
        expected = await in_thread(send, events, *"abcdefghij")
        await told(client, 10)
    async with agent(events) as here:
        for number, event in enumerate(client.events):
            again = await here.opened(event.id)
            assert again.headers["x-oplog-mode"] == "exact"
            rest = await told(again, 10 - number)
            assert sorted(client.told[:number] + rest) == expected


@in_loop
async def test_R16_what_kafka_has_lost_comes_from_the_commit_log(events: SyncRuns) -> None:
    async with agent(events) as here:
        client = await here.opened()
        expected = await in_thread(send, events, *"abcdefgh")
        await told(client, 8)
        await in_thread(send_aborted, events, 0)
        await in_thread(events.replicate, "run-1")
        expected += await in_thread(send, events, "i", "j", "k", "l")
        await told(client, 12)
        ends = await in_thread(here.streams.check) or here.streams.figures.vector
        await in_thread(expire, events, {0: min(ends[0], 4), 1: min(ends[1], 4)})
        await here.streams.check()
        again = await here.opened(client.events[0].id)
        assert again.headers["x-oplog-mode"] == "exact"
        assert sorted(await told(again, 12)) == sorted(expected)


@in_loop
async def test_C10_before_the_first_run_a_replication_is_what_the_topic_has(events: SyncRuns) -> None:
    expected = await in_thread(send, events, "a", "b", "c")
    async with agent(events) as here:
        client = await here.opened("0")
        found = await told(client, 5)
    assert (found[:2], sorted(found[2:])) == (["reset", "live"], expected)


@in_loop
async def test_R22_R25_R27_a_replication_has_all_objects_and_then_what_follows(events: SyncRuns) -> None:
    ids = [f"x{number}" for number in range(60)]
    await in_thread(send, events, *ids)
    await in_thread(lambda: send(events, "x0", "x1", event="delete"))
    await in_thread(events.replicate, "run-1")
    later = await in_thread(send, events, "y")
    async with agent(events) as here:
        client = await here.opened("0")
        found = await told(client, 61)
        half = client.events[30]
        again = await here.opened(half.id)
        rest = await told(again, 61 - 29)
    assert (found[0], found[-2], found[-1:]) == ("reset", "live", later)
    assert sorted(found[1:-2]) == sorted(f"insert {id_}" for id_ in ids[2:])
    assert rest == found[found.index(str(half)) :]


@in_loop
async def test_R24_C13_G5_a_replication_since_a_time_has_deletes(events: SyncRuns) -> None:
    await in_thread(send, events, "old", "gone")
    await in_thread(events.replicate, "run-1")
    head = await in_thread(events.runs.control.bindings_head)
    await in_thread(lambda: send(events, "gone", event="delete"))
    await in_thread(send, events, "new")
    await in_thread(events.replicate, "run-2")
    async with agent(events) as here:
        # Clocks may differ by ten seconds, so a time begins so much earlier.
        client = await here.opened(str(head.newest // 1000 + 10_001))
        found = await told(client, 3)
    assert (sorted(found[:2]), found[2]) == (["delete gone", "insert new"], "live")


@in_loop
async def test_a_topic_that_was_created_again_resets_clients(events: SyncRuns, services: Any) -> None:
    async with agent(events) as here:
        client = await here.opened()
        await in_thread(send, events, "a")
        await told(client, 1)
    await in_thread(delete_topic, services.kafka, events.runs.name)
    await in_thread(services.create_topic, events.runs.name, PARTITIONS)
    async with agent(events) as here:
        again = await here.opened(client.events[-1].id)
        assert again.headers["x-oplog-mode"] == "reset"
