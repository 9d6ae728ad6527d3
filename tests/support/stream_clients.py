"""Clients of an agent's streams, without HTTP: what they are sent, parsed as a browser does."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from tests.support.memory_oplog import MemoryLog, MemoryObjects, MemoryTopic
from tests.support.oplog_samples import NOWHERE_TO_CONNECT
from tests.support.waiting import SLOWEST_MACHINE

from tidemark.oplog.agent.streams.requests import StreamRequest
from tidemark.oplog.agent.streams.service import Streams
from tidemark.oplog.agent.streams.settings import StreamSettings

QUICK = StreamSettings(
    pipeline="objects",
    topic="oplog",
    kafka=NOWHERE_TO_CONNECT,
    coalesce=0.01,
    heartbeat=60.0,
    checkpoint=60.0,
    stall=60.0,
    ring_events=100,
)


@dataclass(frozen=True)
class Event:
    """An event that a browser dispatches."""

    name: str
    id: str
    data: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name} {self.data['id']}" if "id" in self.data else self.name


@dataclass
class StreamClient:
    """One client."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    is_over: bool = False
    last_id: str = ""
    aborted: bool = False
    blocked: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared, the client takes nothing."""

    def __post_init__(self) -> None:
        self.blocked.set()
        self.arrived = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._got_request = False

    async def receive(self) -> dict[str, Any]:
        if not self._got_request:
            self._got_request = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if self.disconnected.is_set():
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message["body"]
            self.is_over = not message["more_body"]
            self.arrived.set()
            await self.blocked.wait()
        self.arrived.set()

    def abort(self) -> None:
        self.aborted = True
        self.blocked.set()
        self.disconnected.set()

    @property
    def events(self) -> list[Event]:
        """What a browser has dispatched."""
        found, last_id = [], ""
        for block in self.body.decode().split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
            last_id = fields.get("id", last_id)
            if "data" in fields:
                found.append(Event(fields["event"], last_id, json.loads(fields["data"])))
        self.last_id = last_id
        return found

    @property
    def told(self) -> list[str]:
        """The events in short, without ``open``."""
        return [str(one) for one in self.events if one.name != "open"]

    async def until(self, condition: Callable[[], Any], seconds: float = 20) -> None:
        """Wait until something is true after something was sent."""
        deadline = time.monotonic() + seconds * SLOWEST_MACHINE
        while not condition():
            assert time.monotonic() < deadline, f"never came true; was sent {bytes(self.body)!r}"
            self.arrived.clear()
            try:
                await asyncio.wait_for(self.arrived.wait(), 0.05)
            except TimeoutError:
                continue

    async def gets(self, *told: str) -> None:
        """Wait until these events, and no other, were sent."""
        try:
            await self.until(lambda: self.told == list(told), 5)
        except AssertionError:
            assert self.told == list(told), bytes(self.body)

    async def opened(self) -> "StreamClient":
        """Wait until the stream is open or refused."""
        await self.until(lambda: self.events or self.is_over)
        return self

    async def leave(self) -> str:
        """Disconnect; the last id."""
        self.disconnected.set()
        if self.task is not None:
            await self.task
        _ = self.events
        return self.last_id


@dataclass
class StreamWorld:
    """An agent with its topic, log and collection."""

    topic: MemoryTopic
    log: MemoryLog
    objects: MemoryObjects
    streams: Streams
    clients: list[StreamClient] = field(default_factory=list)

    def connect(self, last_event_id: str | None = None, **options: Any) -> StreamClient:
        """A client that begins at an id."""
        client = StreamClient()
        request = StreamRequest(last_event_id, **options)
        serving = self.streams.serve(request, client.receive, client.send, client.abort)
        client.task = asyncio.create_task(serving)
        self.clients.append(client)
        return client

    async def opened(self, last_event_id: str | None = None, **options: Any) -> StreamClient:
        """The same, once its stream is open."""
        return await self.connect(last_event_id, **options).opened()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is true."""
        deadline = time.monotonic() + 20 * SLOWEST_MACHINE
        while not condition():
            assert time.monotonic() < deadline, "never came true"
            await asyncio.to_thread(time.monotonic)

    async def turns(self, count: int) -> None:
        """Let the agent work for a while."""
        for _ in range(count):
            await asyncio.to_thread(time.monotonic)

    async def caught_up(self) -> None:
        """Wait until the hub has read everything."""
        await self.until(lambda: self.streams.figures.vector == tuple(self.topic.ends))


@asynccontextmanager
async def given_agent(
    topic: MemoryTopic | None = None,
    log: MemoryLog | None = None,
    settings: StreamSettings = QUICK,
    **options: Any,
) -> AsyncIterator[StreamWorld]:
    """An agent that follows a topic."""
    topic = topic or MemoryTopic()
    log = log or MemoryLog(topic)
    objects = MemoryObjects(log)
    streams = Streams(settings, topic, lambda _: log, objects, **options)
    world = StreamWorld(topic, log, objects, streams)
    await streams.start()
    try:
        yield world
    finally:
        for client in world.clients:
            client.blocked.set()
        await streams.drain()
        for client in world.clients:
            assert client.task is not None
            await client.task


def in_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """Run an asynchronous test in an event loop of its own."""

    @wraps(test)
    def run(*args: Any, **options: Any) -> None:
        asyncio.run(test(*args, **options))

    return run
