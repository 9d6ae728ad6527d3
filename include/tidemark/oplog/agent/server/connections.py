"""HTTP connections: uvicorn's protocol over httptools, with the limits that it lacks.

A client may be slow, talk without end, or say nothing. Every wait for a client has an end here, and the bytes
that a connection can make the agent keep are bounded: the head of a request, requests ahead of their answers,
and what the client does not read. Bodies have limits of their own, in ``bodies``.
"""

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

LARGEST_HEAD = 32_768
"""Bytes of a request's line and headers, beyond the chunk in which they begin."""
MOST_HEADERS = 100
HEAD_WITHIN = 10.0
"""Seconds from the connection, or from the first byte of a later request, to the end of its headers."""
FLUSHED_WITHIN = 10.0
"""Seconds that a client has to read the last of a response before its connection is cut."""
WRITTEN_WITHIN = 60.0
"""Seconds that a full buffer waits for its client."""
MOST_PIPELINED = 8
"""Requests that a connection may send ahead of their answers."""
ABORT = "tidemark.abort"
"""The extension of a scope with the function that cuts the connection at once."""


class HttpConnections(ServerState):
    """The open connections of an agent and their limit."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.refused = 0
        """Connections that were refused because there were too many."""
        self.cut = 0
        """Connections that were closed because they broke a limit."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection."""

    server_state: HttpConnections

    def __init__(
        self,
        config: Config,
        server_state: HttpConnections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_bytes = 0
        self._in_head = True
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it where there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.server_state.most:
            self.server_state.refused += 1
            said = b"This agent has too many connections.\n"
            self._refuse(b"503 Service Unavailable\r\nretry-after: 5", said)
        else:
            self._set_deadline(HEAD_WITHIN)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._set_deadline(None)
        self._stop_write_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser with what is bounded: a head has only so many bytes."""
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._deadline is None:
                self._set_deadline(HEAD_WITHIN)  # the first byte of a later request
        super().data_received(data)
        if self._in_head and self._head_bytes > LARGEST_HEAD:
            self._refuse_head()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"call": self.cut}}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        if len(self.headers) < MOST_HEADERS:
            super().on_header(name, value)
        else:
            self._refuse_head()

    def on_headers_complete(self) -> None:
        """The request can be answered, after those before it."""
        self._in_head, self._head_bytes = False, 0
        self._set_deadline(None)
        if self.transport.is_closing():
            return
        if len(self.pipeline) < MOST_PIPELINED:
            super().on_headers_complete()
        else:
            self.cut()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request was received."""
        self._in_head = True
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """A response was written; its client has a while to read what the transport still has."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._set_deadline(FLUSHED_WITHIN)

    def pause_writing(self) -> None:
        """The client reads slower than the agent writes."""
        super().pause_writing()
        if self._write_deadline is None:
            self._write_deadline = self.loop.call_later(WRITTEN_WITHIN, self.cut)

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._stop_write_deadline()
        super().resume_writing()

    def shutdown(self) -> None:
        """The agent stops."""
        super().shutdown()
        if self.transport.is_closing():
            self._set_deadline(FLUSHED_WITHIN)

    def cut(self) -> None:
        """Close at once, with what is not sent yet."""
        self.server_state.cut += 1
        self.transport.abort()

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.cut) if seconds is not None else None

    def _stop_write_deadline(self) -> None:
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None

    def _refuse_head(self) -> None:
        if not self.transport.is_closing():
            self.server_state.cut += 1
            self._refuse(b"431 Request Header Fields Too Large", b"The request's headers are too large.\n")

    def _refuse(self, status: bytes, said: bytes) -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n" % status
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(said) + said)
        self.transport.close()
        self._set_deadline(FLUSHED_WITHIN)
