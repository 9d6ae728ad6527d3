"""Answers to HTTP requests, as ASGI messages: a status, a few headers and a JSON document or text."""

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

CLOSE: Header = (b"connection", b"close")
JSON: Header = (b"content-type", b"application/json")
PLAIN: Header = (b"content-type", b"text/plain; charset=utf-8")
NOT_STORED: Header = (b"cache-control", b"no-store")


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes:
        status: The status code.
        body: The body; empty for 204.
        headers: All headers but the length.
    """

    status: int
    body: bytes = b""
    headers: Sequence[Header] = ()

    async def send(self, send: Send) -> None:
        """Send it."""
        length = [] if self.status == 204 else [(b"content-length", b"%d" % len(self.body))]
        await send(
            {"type": "http.response.start", "status": self.status, "headers": [*self.headers, *length]}
        )
        await send({"type": "http.response.body", "body": self.body})


def document(status: int, value: Mapping[str, Any], *headers: Header) -> Answer:
    """An answer with a JSON object."""
    return Answer(status, json.dumps(value).encode() + b"\n", (JSON, NOT_STORED, *headers))


def refusal(status: int, reason: str, *headers: Header, **further: Any) -> Answer:
    """An answer that says why a request is refused."""
    return document(status, {"error": reason, **further}, *headers)


def try_again(status: int, seconds: int, reason: str, *headers: Header, **further: Any) -> Answer:
    """An answer to a request that may succeed later."""
    return refusal(status, reason, (b"retry-after", b"%d" % seconds), *headers, **further)
