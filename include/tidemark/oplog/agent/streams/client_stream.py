"""One client's stream, from the response's status to its end.

The task of its request does everything in order: rows where it needs them, what it has missed, what happens.
"""

import asyncio
import time
from contextlib import suppress

import structlog

from tidemark.errors import TidemarkError
from tidemark.oplog.agent.streams.asgi import Receive, Send
from tidemark.oplog.agent.streams.catching_up import CatchingUp
from tidemark.oplog.agent.streams.client_writer import ClientWriter
from tidemark.oplog.agent.streams.errors import ClientBehind, ClientGone, StreamEnd
from tidemark.oplog.agent.streams.following import Following
from tidemark.oplog.agent.streams.opening import StreamStart
from tidemark.oplog.agent.streams.shared_sources import Sources
from tidemark.oplog.model.event_ids import OperationId, operation_prefix
from tidemark.oplog.model.follower import StreamShape
from tidemark.oplog.model.server_sent_events import Marker
from tidemark.oplog.model.stream_filter import StreamFilter

events = structlog.get_logger()

MODE_HEADER = b"x-oplog-mode"
LAST_EVENT_ID = b"last-event-id"


class ClientStream:
    """See the module. Belongs to the event loop.

    Attributes:
        writer: The connection.
        over: Done when the request is answered.
        was_slow: Whether it has ended because the client fell behind or took nothing.
    """

    __slots__ = ("__weakref__", "_following", "_shape", "_sources", "_start", "over", "was_slow", "writer")

    def __init__(
        self, sources: Sources, start: StreamStart, filter_: StreamFilter, writer: ClientWriter
    ) -> None:
        self._sources, self._start, self.writer = sources, start, writer
        prefix = operation_prefix(start.digest).encode()
        self._shape = StreamShape(filter_, prefix, writer.format)
        self._following: Following | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.was_slow = False

    async def run(self, receive: Receive, send: Send) -> None:
        """Send the stream until it ends."""
        watching = asyncio.create_task(self._watch_disconnect(receive))
        try:
            await self._until_end(send)
        except asyncio.CancelledError:
            if not self.writer.is_kicked:
                raise
            self.was_slow = True
        finally:
            watching.cancel()
            await self._give_up_rows()

    async def _until_end(self, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self._headers()})
            await self._send_all()
        except ClientGone:
            self.was_slow = self.writer.is_kicked
        except StreamEnd as reason:
            self.was_slow = isinstance(reason, ClientBehind)
            slow = self.writer.format.without_id(Marker.SLOW) if self.was_slow else b""
            await self.writer.farewell(slow)
        except TidemarkError as error:
            # The client comes back with its last id, and is told then what is wrong.
            events.warning("stream not continued", reason=str(error))
            await self.writer.farewell()

    async def _give_up_rows(self) -> None:
        if self._start.rows is None:
            return
        try:
            await self._sources.store_threads.run(self._start.rows.held.close)
        except asyncio.CancelledError:  # after they were given up
            if not self.writer.is_kicked:
                raise

    def offer(self) -> None:
        """The tick: there may be new operations."""
        if self._following is not None:
            self._following.offer()

    def look(self) -> None:
        """The watch: something may be due."""
        now = time.monotonic()
        self.writer.look(now)
        if self._following is not None:
            self._following.look(now)

    async def _send_all(self) -> None:
        start, writer = self._start, self.writer
        id_ = start.open_id.encode()
        retry = self._sources.settings.retry
        await writer.write(writer.format.opening(id_, start.mode, retry), 1)
        writer.refuse_stopped()
        catching_up = CatchingUp(self._sources, self._shape, writer)
        if start.rows is not None:
            if start.rows.resets:
                reset = writer.format.event(Marker.RESET, str(start.rows.begin).encode())
                await writer.write(reset, 1)
            await catching_up.send_rows(start.rows)
            await self._give_up_rows()
            live = str(OperationId(start.digest, start.vector)).encode()
            await writer.write(writer.format.event(Marker.LIVE, live), 1)
        vector = await catching_up.send_missed(start.vector)
        del catching_up
        self._following = Following(self._sources.hub, self._shape, writer, vector)
        await self._following.run()

    def _headers(self) -> list[tuple[bytes, bytes]]:
        start = self._start
        found = [
            (b"content-type", self.writer.format.content_type),
            (b"cache-control", b"no-cache, no-store, must-revalidate, no-transform"),
            (b"x-accel-buffering", b"no"),
            (MODE_HEADER, start.mode.encode()),
        ]
        if start.echo is not None:
            found.append((LAST_EVENT_ID, start.echo.encode()))
        return found

    async def _watch_disconnect(self, receive: Receive) -> None:
        with suppress(asyncio.CancelledError):
            while (await receive())["type"] != "http.disconnect":
                pass
            self.writer.stop(ClientGone())


async def refuse(send: Send, status: int, text: str, retry_after: int | None = None) -> None:
    """Answer with a refusal as plain text."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % retry_after))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode() + b"\n", "more_body": False})
