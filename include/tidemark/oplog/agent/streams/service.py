"""The streams of one agent: the interface that the HTTP server calls."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from tidemark.oplog.agent.streams.requests import StreamRequest
from tidemark.oplog.agent.streams.settings import StreamSettings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Abort = Callable[[], None]


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """Figures of the streams of an agent.

    Attributes:
        clients: Streams that are open now.
        connections: Streams that were ever opened.
        events_sent: Events that were sent, markers included, heartbeats not.
        slow: Streams that were ended because their client fell behind.
        is_live: Whether the hub follows the topic now.
        vector: The hub's next offset of each partition.
        behind: How many offsets the hub is behind the topic, as far as its last answers tell.
        received: Records that the hub has read.
        void: Corrections among them that change nothing.
        bad: Records among them that are no operations.
        readers: Readers of Kafka in use.
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

    def __init__(self, settings: StreamSettings) -> None:
        self._settings = settings

    @property
    def figures(self) -> StreamFigures:
        """The figures now."""
        return StreamFigures()

    async def start(self) -> None:
        """Begin to follow the topic. Returns at once; Kafka may be down, then it is tried again."""
        raise NotImplementedError

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
        raise NotImplementedError

    async def drain(self) -> None:
        """End all streams, so that clients reconnect to another agent, and stop to follow the topic."""
        raise NotImplementedError

    async def check(self) -> None:
        """Ask Kafka and the collection. Raises ``TidemarkError`` where one of them does not answer."""
        raise NotImplementedError
