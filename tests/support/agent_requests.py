"""Requests to an agent's ASGI application without a network, and streams that a test scripts."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark.oplog.agent.streams.requests import StreamRequest


@dataclass
class Answered:
    """What an application has answered."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def document(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: Any,
    method: str,
    path: str,
    *,
    body: bytes | Iterable[bytes] = b"",
    query: str = "",
    then: Callable[[], Any] = lambda: None,
    **headers: str,
) -> Answered:
    """Send a request. Names of headers have ``_`` for ``-``; ``then`` is called until it is answered."""
    chunks = [body] if isinstance(body, bytes) else list(body)
    messages = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks) - 1}
        for number, chunk in enumerate(chunks)
    ]
    answered = Answered()

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answered.status = message["status"]
            answered.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answered.body += message.get("body", b"")

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }
    task = asyncio.ensure_future(app(scope, receive, send))
    await asyncio.sleep(0)
    for _ in range(100):
        then()
        await asyncio.sleep(0)
        if task.done():
            break
    await task
    return answered


@dataclass
class ScriptedStreams:
    """Streams that answer every request with a line, and keep what they were asked."""

    requests: list[StreamRequest] = field(default_factory=list)
    lines: Sequence[bytes] = (b": hello\n\n",)

    async def serve(self, request: StreamRequest, receive: Any, send: Any, abort: Any = None) -> None:
        self.requests.append(request)
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for line in self.lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
