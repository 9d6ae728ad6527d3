"""One connection of a consumer, as httpx makes it: what the blocking and the asyncio consumer share."""

from collections.abc import Mapping
from contextlib import suppress
from socket import SHUT_RDWR
from typing import TypedDict

import httpx

from tidemark.oplog.consumer.errors import BadOpLogOption

CONNECT_WITHIN = 10.0
"""Seconds for a connection to be made, and for a request to be written."""
EXCERPT = 1_000
"""How much of an answer that is no stream is read, in bytes; it says why."""
EXCERPT_CHUNKS = 10
"""And in how many pieces at most."""
CLOSED = "the agent closed the stream"
INTERRUPTED = "reading was interrupted"


class ClientArguments(TypedDict):
    """Arguments of ``httpx.Client`` and ``httpx.AsyncClient``."""

    proxy: httpx.Proxy | None
    limits: httpx.Limits


def own_client(proxy: str | None) -> ClientArguments:
    """The arguments for a client of the consumer's own; raises ``BadOpLogOption``."""
    try:
        found = None if proxy is None else httpx.Proxy(proxy)
    except (ValueError, httpx.InvalidURL) as error:
        raise BadOpLogOption("proxy", f"is not the address of a proxy ({error})") from None
    # A stream that has ended is never continued on its connection.
    return ClientArguments(proxy=found, limits=httpx.Limits(max_keepalive_connections=0))


def timeouts(silence: float) -> httpx.Timeout:
    """The timeouts of a stream.

    Args:
        silence: Seconds without a byte after which it is dead.
    """
    return httpx.Timeout(CONNECT_WITHIN, read=silence)


def is_stream(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the body of an answer is a stream; otherwise its beginning says why there is none."""
    return status == 200 and headers.get("content-type", "").lower().startswith("text/event-stream")


def broken(error: httpx.TransportError, timeout: httpx.Timeout) -> str:
    """Why there is no connection any more."""
    if isinstance(error, httpx.ReadTimeout):
        return f"not one byte in {timeout.read:.0f} s"
    return f"the connection broke ({type(error).__name__} {error})"


def shut_down(response: httpx.Response) -> None:
    """Ends a response that another thread or task is reading: that one finds the end of the stream."""
    stream = response.extensions.get("network_stream")
    socket = stream.get_extra_info("socket") if stream is not None else None
    if socket is not None:
        with suppress(OSError):  # it is closed already
            socket.shutdown(SHUT_RDWR)
