"""The streams of one agent: the interface that the HTTP server calls.

One hub follows the topic for all clients. When its life ends, because the topic is another one now or what it
needs is gone, all streams end, clients come back with their ids, and the next life begins.
"""

import asyncio
import random
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import structlog

from tidemark.errors import TidemarkError
from tidemark.kafka.errors import OffsetGone
from tidemark.oplog.agent.streams.asgi import Abort, Receive, Send
from tidemark.oplog.agent.streams.client_stream import ClientStream, refuse
from tidemark.oplog.agent.streams.client_writer import ClientWriter
from tidemark.oplog.agent.streams.errors import HubNotReady, StreamError, StreamOver
from tidemark.oplog.agent.streams.hub.hub import Hub
from tidemark.oplog.agent.streams.hub.hub_reader import FollowedTopic, HubReader
from tidemark.oplog.agent.streams.opening import StreamStart, begin_stream
from tidemark.oplog.agent.streams.requests import StreamRequest
from tidemark.oplog.agent.streams.settings import StreamSettings
from tidemark.oplog.agent.streams.shared_sources import IdleRanges, Limits, Sources, Threads
from tidemark.oplog.agent.streams.sources.logged_topic import LoggedTopic
from tidemark.oplog.agent.streams.sources.object_store import ObjectStore
from tidemark.oplog.agent.streams.sources.topic_door import TopicDoor
from tidemark.oplog.model.event_ids import BadEventId
from tidemark.oplog.model.server_sent_events import JSON_LINES, SERVER_SENT, OperationData

events = structlog.get_logger()

LogOf = Callable[[FollowedTopic], LoggedTopic]
"""The log of the topic that a hub follows."""

READY_WITHIN = 5.0
"""Seconds that a request waits for the hub."""
NEXT_LIFE_AFTER = 1.0
STOPS = "the agent stops"
OTHER_THREADS = 4
"""For short questions, beside those that read for clients."""


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """Figures of the streams of an agent.

    Attributes:
        clients: Streams that are open now.
        connections: Streams that were ever opened.
        events_sent: Events that were sent, markers included, heartbeats not.
        slow: Streams that were ended because their client fell behind or took nothing.
        is_live: Whether the hub follows the topic now.
        vector: The hub's next offset of each partition.
        behind: How many offsets the hub is behind the topic, as far as its last answers tell.
        received: Records that the hub has read.
        void: Corrections among them that change nothing.
        bad: Records among them that are no operations.
        readers: Readers of Kafka and of the commit log in use.
        scans: Reads of the collection in use.
    """

    clients: int = 0
    connections: int = 0
    events_sent: int = 0
    slow: int = 0
    is_live: bool = False
    vector: tuple[int, ...] = ()
    behind: int = 0
    received: int = 0
    void: int = 0
    bad: int = 0
    readers: int = 0
    scans: int = 0


class Streams:
    """The streams of one agent. Belongs to the event loop that calls ``start``."""

    def __init__(
        self,
        settings: StreamSettings,
        door: TopicDoor,
        log: LogOf | None = None,
        store: ObjectStore | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Connects to nothing yet.

        Args:
            settings: The settings.
            door: The topic.
            log: The topic's commit log; None: what Kafka has forgotten cannot be sent.
            store: The collection of objects; None: nothing is replicated.
            chance: A number from 0 to 1, for the age of each stream.
        """
        self._settings, self._door, self._log_of, self._store = settings, door, log, store
        self._chance, self._data = chance, OperationData(settings.object_url)
        self._clients: set[ClientStream] = set()
        self._openings: set[asyncio.Task[tuple[Sources, StreamStart]]] = set()
        self._connections = self._sent = self._slow = 0
        self._sources: Sources | None = None
        self._reason = "it has just begun"
        self._tick_at: float | None = None
        self._is_draining = False

    @property
    def figures(self) -> StreamFigures:
        """The figures now."""
        sources, sent = self._sources, sum(one.writer.sent for one in self._clients)
        shared = StreamFigures(len(self._clients), self._connections, self._sent + sent, self._slow)
        if sources is None:
            return shared
        hub, limits = sources.hub, sources.limits
        latest = hub.latest
        return StreamFigures(
            shared.clients,
            shared.connections,
            shared.events_sent,
            shared.slow,
            hub.is_live,
            hub.ring.vector,
            latest.behind if latest else 0,
            latest.received if latest else 0,
            latest.void if latest else 0,
            latest.bad if latest else 0,
            limits.readers.busy + limits.log_readers.busy,
            limits.scans.busy,
        )

    async def start(self) -> None:
        """Begin to follow the topic. Returns at once; Kafka may be down, then it is tried again."""
        settings = self._settings
        self._executor = ThreadPoolExecutor(settings.readers + OTHER_THREADS, "oplog kafka")
        asking_cassandra = settings.log_readers + settings.scans + OTHER_THREADS
        self._store_executor = ThreadPoolExecutor(asking_cassandra, "oplog cassandra")
        self._threads, self._store_threads = Threads(self._executor), Threads(self._store_executor)
        self._changed = asyncio.Event()
        self._lives = asyncio.create_task(self._live_on(), name="oplog hub lives")
        self._watch = asyncio.create_task(self._watch_clients(), name="oplog watch")

    async def serve(
        self, request: StreamRequest, receive: Receive, send: Send, abort: Abort | None = None
    ) -> None:
        """Answer one request as an ASGI application does: its status, its headers and the stream.

        Refusals are answered too: 400 for a malformed id, 503 with ``Retry-After`` where Kafka, the log
        or the collection cannot be read.

        Args:
            request: The request.
            receive: ASGI's.
            send: ASGI's. The server may wrap it to add headers.
            abort: Ends the connection at once, with what is not sent yet. Without it, the connection of a
                client that takes nothing ends when the task of the request does.
        """
        opening = asyncio.ensure_future(self._begin(request))
        self._openings.add(opening)
        try:
            sources, start = await opening
        except asyncio.CancelledError:
            if not (opening.cancelled() and self._is_draining):
                raise
            stops = HubNotReady(STOPS)
            await refuse(send, stops.status, str(stops), stops.retry_after)
            return
        except BadEventId as error:
            await refuse(send, 400, str(error))
            return
        except StreamError as error:
            await refuse(send, error.status, str(error), error.retry_after)
            return
        except TidemarkError as error:
            await refuse(send, StreamError.status, str(error), StreamError.retry_after)
            return
        finally:
            opening.cancel()
            self._openings.discard(opening)
        format_ = JSON_LINES if request.ndjson else SERVER_SENT
        writer = ClientWriter(self._settings, format_, send, self._ends_at(request), abort)
        client = ClientStream(sources, start, request.stream_filter, writer)
        self._clients.add(client)
        self._connections += 1
        if self._is_draining or self._sources is not sources:
            writer.stop(StreamOver())
        try:
            await client.run(receive, send)
        finally:
            self._clients.discard(client)
            self._sent += writer.sent
            self._slow += client.was_slow
            client.over.set_result(None)

    async def _begin(self, request: StreamRequest) -> tuple[Sources, StreamStart]:
        sources = await self._ready()
        return sources, await begin_stream(request, sources)

    async def drain(self) -> None:
        """End all streams, so that clients reconnect to another agent, and stop to follow the topic."""
        self._is_draining = True
        if openings := list(self._openings):
            for opening in openings:
                opening.cancel()
            await asyncio.wait(openings)
        for client in list(self._clients):
            client.writer.stop(StreamOver())
        if over := [client.over for client in self._clients]:
            await asyncio.wait(over, timeout=self._settings.stall)
        for client in list(self._clients):
            client.writer.kick()
        if over:
            await asyncio.wait(over)
        for task in (self._watch, self._lives):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for executor in (self._executor, self._store_executor):
            executor.shutdown(wait=False)

    async def check(self) -> None:
        """Ask Kafka and the collection. Raises ``TidemarkError`` where one of them does not answer."""
        sources = await self._ready()
        sources.forget_offsets()
        await sources.offsets()
        if self._store is not None:
            await self._store_threads.ask(self._store.check)

    async def _ready(self) -> Sources:
        """What streams are read from, once the hub is live. Raises ``HubNotReady``."""
        deadline = time.monotonic() + READY_WITHIN
        while (sources := self._sources) is None or not sources.hub.is_live:
            left = deadline - time.monotonic()
            if left <= 0 or self._is_draining:
                raise HubNotReady(STOPS if self._is_draining else self._reason)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
            self._changed.clear()
        return sources

    def _ends_at(self, request: StreamRequest) -> float | None:
        age, now = self._settings.max_age, time.monotonic()
        by_age = None if age is None else now + age * (1 - 0.2 * self._chance())
        ends = [one for one in (by_age, request.expires_at) if one is not None]
        return min(ends, default=None)

    async def _live_on(self) -> None:
        """One life of the hub after the other."""
        from_end = False
        while True:
            try:
                from_end = await self._live(from_end)
            except TidemarkError as error:
                self._reason = str(error)
                events.warning("topic not followed", topic=self._settings.topic, reason=str(error))
            await asyncio.sleep(NEXT_LIFE_AFTER)

    async def _live(self, from_end: bool) -> bool:
        """One life; whether the next one has to begin at the end of the topic."""
        reader = HubReader(self._settings, self._door)
        topic = await self._threads.run(lambda: reader.open(from_end))
        log = self._log_of(topic) if self._log_of is not None else None
        reader.use_log(log)
        hub = Hub(self._settings, reader, topic, self._arrived)
        idle = IdleRanges(self._door, self._settings.readers)
        self._sources = Sources(
            self._settings,
            hub,
            self._door,
            log,
            self._store,
            self._threads,
            self._store_threads,
            Limits.of(self._settings),
            idle,
            self._data,
        )
        hub.start()
        hub.live.add_done_callback(lambda _: self._changed.set())
        if hub.is_live:
            self._changed.set()
        try:
            reason = await asyncio.shield(hub.ended)
            self._reason = str(reason)
            events.warning("streams ended", topic=self._settings.topic, reason=str(reason))
            return isinstance(reason, OffsetGone)
        finally:
            self._sources = None
            for client in list(self._clients):
                client.writer.stop(StreamOver())
            await hub.stop()
            await self._threads.run(idle.close)

    # The tick and the watch

    def _arrived(self) -> None:
        """The hub has read something: clients are given it at the next tick."""
        if self._tick_at is None:
            loop = asyncio.get_running_loop()
            self._tick_at = loop.time() + self._settings.coalesce
            loop.call_at(self._tick_at, self._tick)

    def _tick(self) -> None:
        self._tick_at = None
        self._each(ClientStream.offer)

    async def _watch_clients(self) -> None:
        """Heartbeats, checkpoints, ages, and clients that take nothing: for all clients at once."""
        settings = self._settings
        every = min(1.0, settings.heartbeat / 4, settings.checkpoint / 4, settings.stall / 4)
        while True:
            await asyncio.sleep(every)
            self._each(ClientStream.look)

    def _each(self, action: Callable[[ClientStream], None]) -> None:
        for client in list(self._clients):
            try:
                action(client)
            except Exception as error:  # a defect: one stream ends with it, the others go on
                events.error("stream failed", error=f"{type(error).__name__}: {error}")
                traceback.print_exception(error)
                client.writer.stop(StreamOver())
