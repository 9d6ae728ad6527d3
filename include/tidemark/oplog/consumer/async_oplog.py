"""``tidemark.AsyncOpLog``: follows an agent's stream of operations, for asyncio."""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from types import TracebackType
from typing import Self

import httpx

from tidemark.oplog.consumer.connection import (
    CLOSED,
    EXCERPT,
    EXCERPT_CHUNKS,
    INTERRUPTED,
    broken,
    is_stream,
    own_client,
    shut_down,
)
from tidemark.oplog.consumer.errors import NothingDone
from tidemark.oplog.consumer.items import OpLogItem, OpLogReset
from tidemark.oplog.consumer.opened import STALLED_AFTER, open_consumer


class AsyncOpLog:
    """As ``OpLog``, for one event loop::

        async with AsyncOpLog("http://127.0.0.1:8042", state_file="videos.position") as oplog:
            async for op in oplog:
                ...
                oplog.done(op)

    Several tasks may iterate over one object. A task that is cancelled while it waits for an item loses none.
    """

    def __init__(
        self,
        url: str,
        *,
        state_file: str | os.PathLike[str] | None = None,
        types: str | Iterable[str] | None = None,
        parents: str | Iterable[str] | None = None,
        token: str | None = None,
        since: datetime | int | None = None,
        last_event_id: str | None = None,
        allow_replication: bool = True,
        max_in_flight: int = 1_000,
        silence: float = 90.0,
        attempts: int | None = None,
        proxy: str | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        """Checks the arguments and locks the state file; arguments and errors are those of ``OpLog``."""
        self._owns_client = client is None
        self._client = client or httpx.AsyncClient(**own_client(proxy))
        opened = open_consumer(
            url,
            state_file=state_file,
            types=types,
            parents=parents,
            token=token,
            since=since,
            last_event_id=last_event_id,
            allow_replication=allow_replication,
            max_in_flight=max_in_flight,
            silence=silence,
            attempts=attempts,
        )
        self._following = opened.following
        self._in_flight = opened.in_flight
        self._keeper = opened.keeper
        self._timeout = opened.timeout
        self._turn = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._unsaved_reset: OpLogReset | None = None
        self._at_the_end = weakref.finalize(self, self._keeper.close)

    @property
    def position(self) -> str | None:
        """The id after which a restart has to continue; None: nowhere yet."""
        return self._in_flight.position.event_id

    def done(self, item: OpLogItem) -> None:
        """An item has been handled and need not be handed out again. Idempotent; from any thread."""
        self._in_flight.done(item.number)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> OpLogItem:
        """The next item; waits for it. Raises what iterating over an ``OpLog`` raises."""
        async with self._turn:
            self._keeper.start()
            while not self._stopping.is_set():
                if self._keeper.has_failed:
                    await asyncio.to_thread(self._keeper.save_now)
                if self._unsaved_reset is None:
                    await self._wait_for_room()
                    item = self._following.next_item()
                    if not isinstance(item, OpLogReset):
                        if item is not None:
                            return item
                        await self._read()
                        continue
                    self._unsaved_reset = item
                # The caller will empty its copy: from then on, no restart may continue at an older position.
                await asyncio.to_thread(self._keeper.save_now)
                reset, self._unsaved_reset = self._unsaved_reset, None
                return reset
            raise StopAsyncIteration

    def stop(self) -> None:
        """Ends the iteration; called on the event loop, for example by a signal handler of it."""
        self._stopping.set()
        self._room.set()
        if self._response is not None:
            shut_down(self._response)

    async def close(self) -> None:
        """Saves the position and closes the connection. Raises ``PositionNotSaved``."""
        self.stop()
        async with self._turn:
            await self._disconnect()
            if self._owns_client:
                await self._client.aclose()
        self._at_the_end.detach()
        await asyncio.to_thread(self._keeper.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _wait_for_room(self) -> None:
        if self._in_flight.has_room:
            return
        loop = asyncio.get_running_loop()
        stalled_at = loop.time() + STALLED_AFTER
        # ``done`` may be called in any thread.
        self._in_flight.told = lambda: _in_loop(loop, self._room)
        while not self._in_flight.has_room and not self._stopping.is_set():
            self._room.clear()
            if self._in_flight.has_room:
                return
            try:
                async with asyncio.timeout_at(stalled_at):
                    await self._room.wait()
            except TimeoutError:
                raise NothingDone(len(self._in_flight), STALLED_AFTER) from None

    async def _read(self) -> None:
        """One step towards the next item: a connection, or a chunk of the stream."""
        following = self._following
        if not following.is_connected or self._chunks is None:
            await self._disconnect()
            await self._connect()
            return
        ended: str | None = None
        try:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                ended = CLOSED
            else:
                following.received(chunk)
        except httpx.TransportError as error:
            ended = broken(error, self._timeout)
        except BaseException:  # cancelled: httpx has closed the connection
            following.lost(INTERRUPTED)
            raise
        if ended is not None and not self._stopping.is_set():
            following.lost(ended)

    async def _connect(self) -> None:
        following = self._following
        if await self._stops_within(following.wait):
            return
        request = self._client.build_request(
            "GET", following.url, headers=following.connecting(), timeout=self._timeout
        )
        try:
            self._response = response = await self._client.send(request, stream=True)
            self._chunks = response.aiter_raw()
            excerpt = b""
            if not is_stream(response.status_code, response.headers):
                excerpt = await _excerpt(self._chunks)
        except httpx.TransportError as error:
            following.lost(broken(error, self._timeout))
            return
        following.answered(response.status_code, response.headers, excerpt)

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._stopping.wait()
        except TimeoutError:
            return False

    async def _disconnect(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            await response.aclose()


async def _excerpt(chunks: AsyncIterator[bytes]) -> bytes:
    found = b""
    for _ in range(EXCERPT_CHUNKS):
        chunk = await anext(chunks, None)
        found += chunk or b""
        if chunk is None or len(found) >= EXCERPT:
            break
    return found


def _in_loop(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(event.set)
