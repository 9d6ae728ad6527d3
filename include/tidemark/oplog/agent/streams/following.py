"""A client that follows the hub: it waits for the tick, writes what it is given, and waits again."""

import asyncio

from tidemark.oplog.agent.streams.client_writer import ClientWriter
from tidemark.oplog.agent.streams.errors import ClientBehind
from tidemark.oplog.agent.streams.hub.hub import Hub
from tidemark.oplog.model.follower import Follower, StreamShape
from tidemark.oplog.model.vector import Vector


class Following:
    """One client. Belongs to the event loop."""

    __slots__ = ("_follower", "_hub", "_shape", "_wake", "_writer")

    def __init__(self, hub: Hub, shape: StreamShape, writer: ClientWriter, vector: Vector) -> None:
        """``vector`` is what the client has; the ring has what follows."""
        self._hub, self._shape, self._writer = hub, shape, writer
        self._follower = Follower(hub.ring, shape, vector)
        self._wake: asyncio.Future[tuple[bytes, int]] | None = None
        writer.on_stop = self._stop

    async def run(self) -> None:
        """Follow until the stream ends, which is raised."""
        writer = self._writer
        loop = asyncio.get_running_loop()
        while True:
            data, count = self._next()
            if not data:
                writer.refuse_stopped()
                self._wake = loop.create_future()
                try:
                    data, count = await self._wake
                finally:
                    self._wake = None
            if data:
                await writer.write(data, count)
            writer.refuse_stopped()

    def offer(self) -> None:
        """The tick: hand over what has arrived, where the client waits for it."""
        if self._is_waiting:
            data, count = self._next()
            if data:
                self._give(data, count)

    def look(self, now: float) -> None:
        """The watch: a checkpoint or a heartbeat, where the client waits and one of them is due."""
        if self._is_waiting:
            position = self._shape.prefix + self._follower.position(self._hub.ring)
            if self._writer.is_checkpoint_due(now, position):
                self._give(self._writer.checkpoint(position), 1)
            elif self._writer.is_heartbeat_due(now):
                self._give(self._writer.format.heartbeat, 0)

    @property
    def _is_waiting(self) -> bool:
        return self._wake is not None and not self._wake.done()

    def _next(self) -> tuple[bytes, int]:
        """The next events; nothing where there are none, or none that the filter admits."""
        hub, follower = self._hub, self._follower
        while follower.is_behind(hub.ring):
            if follower.is_overrun(hub.ring):
                self._writer.stop(ClientBehind())
                return b"", 0
            chunk = follower.take(hub.ring, hub.chunks)
            if chunk.data:
                return chunk.data, chunk.count
        return b"", 0

    def _give(self, data: bytes, count: int) -> None:
        assert self._wake is not None
        self._wake.set_result((data, count))

    def _stop(self) -> None:
        if self._is_waiting:
            self._give(b"", 0)
