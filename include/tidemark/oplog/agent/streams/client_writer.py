"""The connection of one client as its stream writes to it: heartbeats, checkpoints, and when it has to end.

A stream ends for one reason, which is set once, by whichever party finds it first: the client has gone, its
time is over, the hub's life has ended, or the client takes nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from tidemark.oplog.agent.streams.asgi import Abort, Send
from tidemark.oplog.agent.streams.errors import ClientGone, StreamEnd, StreamOver
from tidemark.oplog.agent.streams.settings import StreamSettings
from tidemark.oplog.model.server_sent_events import EventFormat, Marker

Answer = TypeVar("Answer")


class ClientWriter:
    """See the module. Belongs to the event loop.

    Attributes:
        format: How events are written.
        sent: Events so far, heartbeats left out.
        stopped: Done with the reason for which the stream ends.
        on_stop: Called then.
    """

    __slots__ = (
        "_abort",
        "_checkpoint",
        "_checkpoint_at",
        "_ends_at",
        "_heartbeat",
        "_kicked",
        "_send",
        "_stall",
        "_task",
        "_told",
        "_writing_since",
        "_written_at",
        "format",
        "on_stop",
        "sent",
        "stopped",
    )

    def __init__(
        self,
        settings: StreamSettings,
        format_: EventFormat,
        send: Send,
        ends_at: float | None,
        abort: Abort | None,
    ) -> None:
        """Made by the task of the request. ``ends_at``: on the clock ``time.monotonic``."""
        self._send, self._abort, self._task = send, abort, asyncio.current_task()
        self._heartbeat, self._checkpoint = settings.heartbeat, settings.checkpoint
        self._stall, self._ends_at = settings.stall, ends_at
        self.format, self.sent = format_, 0
        self.stopped: asyncio.Future[StreamEnd] = asyncio.get_running_loop().create_future()
        self.on_stop: Callable[[], None] | None = None
        self._written_at = self._checkpoint_at = time.monotonic()
        self._writing_since: float | None = None
        self._told: bytes | None = None
        self._kicked = False

    @property
    def is_kicked(self) -> bool:
        """Whether the task was cancelled because the client takes nothing."""
        return self._kicked

    async def write(self, data: bytes, count: int = 0) -> None:
        """Send bytes, and wait until the connection takes more."""
        self._writing_since = time.monotonic()
        try:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
        finally:
            self._writing_since = None
        self._written_at = time.monotonic()
        self.sent += count

    async def farewell(self, data: bytes = b"") -> None:
        """Send the last bytes and end the response."""
        self._writing_since = time.monotonic()
        try:
            await self._send({"type": "http.response.body", "body": data, "more_body": False})
        finally:
            self._writing_since = None

    async def during(self, work: Awaitable[Answer]) -> Answer:
        """Wait for work that sends nothing, with heartbeats. Raises the reason where the stream ends."""
        running = asyncio.ensure_future(work)
        try:
            while True:
                if running.done():
                    return running.result()
                self.refuse_stopped()
                left = max(self._written_at + self._heartbeat - time.monotonic(), 0)
                waiting: set[asyncio.Future[object]] = {running, self.stopped}  # type: ignore[arg-type]
                await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if not running.done() and not self.stopped.done():
                    await self.write(self.format.heartbeat)
        finally:
            if not running.done():
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    async def told(self, position: bytes) -> None:
        """Send a checkpoint where one is due."""
        if self.is_checkpoint_due(time.monotonic(), position):
            await self.write(self.checkpoint(position), 1)

    def is_checkpoint_due(self, now: float, position: bytes) -> bool:
        """Whether the client is told its position, which it may not know."""
        return now - self._checkpoint_at >= self._checkpoint and position not in (b"", self._told)

    def is_heartbeat_due(self, now: float) -> bool:
        """Whether nothing was sent for long."""
        return now - self._written_at >= self._heartbeat

    def checkpoint(self, position: bytes) -> bytes:
        """The event that says the client's position; it counts as sent."""
        self._checkpoint_at, self._told = time.monotonic(), position
        return self.format.event(Marker.CHECKPOINT, position)

    def stop(self, reason: StreamEnd) -> None:
        """The stream ends; the first reason counts."""
        if not self.stopped.done():
            self.stopped.set_result(reason)
            if self.on_stop is not None:
                self.on_stop()

    def refuse_stopped(self) -> None:
        """Raise the reason where the stream ends."""
        if self.stopped.done():
            raise self.stopped.result()

    def look(self, now: float) -> None:
        """Called by the watch: whether the stream's time is over, or its client takes nothing."""
        if self._ends_at is not None and now >= self._ends_at:
            self.stop(StreamOver())
        since = self._writing_since
        if since is not None and now - since > self._stall:
            self.kick()

    def kick(self) -> None:
        """Disconnect a client that takes nothing."""
        if not self._kicked:
            self._kicked = True
            self.stop(ClientGone())
            if self._abort is not None:
                self._abort()
            if self._task is not None:
                self._task.cancel()
