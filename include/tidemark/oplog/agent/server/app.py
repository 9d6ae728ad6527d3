"""The ASGI application of an agent: which request is answered by what, and who may ask.

=============================  =======================================================================
``GET /``, ``GET /ops``        a stream
``POST /``, ``POST /ops``      operations
``POST /ticket``               a ticket for a browser's stream
``GET /status``, ``/metrics``  figures
``GET /health``                whether Kafka and Cassandra answer
=============================  =======================================================================

``HEAD`` is answered where it needs no stream. Anything else is 404 or 405. An error of a handler is logged
and answered with 500; it ends neither the agent nor another request.
"""

import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import structlog

from tidemark.operations.filters import OperationFilter
from tidemark.oplog.agent.server.access import Access, AccessRefused
from tidemark.oplog.agent.server.answers import (
    CLOSE,
    NOT_STORED,
    Answer,
    Message,
    Receive,
    Scope,
    Send,
    document,
    refusal,
    try_again,
)
from tidemark.oplog.agent.server.bodies import BodyRefused, SenderGone
from tidemark.oplog.agent.server.connections import ABORT
from tidemark.oplog.agent.server.cors import CrossOrigin
from tidemark.oplog.agent.server.headers import (
    NDJSON,
    BadQuery,
    RequestHead,
    first_values,
    names,
    read_query,
    stream_type,
)
from tidemark.oplog.agent.server.health import HealthChecks
from tidemark.oplog.agent.server.posts import OperationPosts
from tidemark.oplog.agent.server.status import METRICS_TYPE, metrics
from tidemark.oplog.agent.server.tokens import AgentToken, TokenRole
from tidemark.oplog.agent.streams.requests import StreamRequest
from tidemark.oplog.model.stream_filter import EVERYTHING

OPERATIONS = frozenset({"/", "/ops"})
FIGURES = frozenset({"/status", "/metrics"})
_READING = "GET, HEAD, OPTIONS"

events = structlog.get_logger()


class ServedStreams(Protocol):
    """What the application needs of streams; see ``tidemark.oplog.agent.streams.service.Streams``."""

    async def serve(
        self, request: StreamRequest, receive: Receive, send: Send, abort: Callable[[], None] | None = None
    ) -> None:
        """See ``Streams.serve``."""


class AgentApp:
    """The application. ``is_stopping`` is set while the agent drains."""

    def __init__(
        self,
        *,
        access: Access,
        posts: OperationPosts,
        streams: ServedStreams | None,
        health: HealthChecks,
        status: Callable[[], Mapping[str, Any]],
        cors: CrossOrigin,
    ) -> None:
        """``streams``: None for an agent that only takes operations in."""
        self.is_stopping = False
        self.answers = Counter[int]()
        """Answers by their status code."""
        self._access, self._posts, self._streams = access, posts, streams
        self._health, self._status, self._cors = health, status, cors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = first_values(scope["headers"])
        counted = self._counting(self._cors.adding(headers.get("origin"), send))
        try:
            answer = await self._answer(scope, headers, receive, counted)
        except (AccessRefused, BodyRefused) as refused:
            answer = refused.answer
        except BadQuery as bad:
            answer = refusal(400, f"The query of the request cannot be read: {bad}.")
        except SenderGone:
            return
        except Exception as error:
            events.error("request failed", path=scope["path"], error=f"{type(error).__name__}: {error}")
            traceback.print_exception(error)
            answer = refusal(500, "The agent failed to answer. Its log says why.", CLOSE)
            with suppress(RuntimeError):  # the answer had begun: uvicorn closes the connection
                await answer.send(counted)
            return
        if answer is not None:
            await answer.send(counted)

    def _counting(self, send: Send) -> Send:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answers[message["status"]] += 1
            await send(message)

        return counted

    async def _answer(
        self, scope: Scope, headers: Mapping[str, bytes], receive: Receive, send: Send
    ) -> Answer | None:
        """The answer, or None where a stream was served."""
        method, path = scope["method"], scope["path"]
        allowed = self._allowed(path)
        if allowed is None:
            return refusal(404, "There is nothing here. Streams and operations are at /.")
        if method == "OPTIONS":
            return self._cors.preflight(allowed)
        if method not in allowed.decode().split(", "):
            return refusal(405, f"{path} does not take {method[:20]}.", (b"allow", allowed), CLOSE)
        head = RequestHead(method, path, headers, read_query(scope["query_string"]))
        if path in OPERATIONS and method == "GET":
            abort = scope.get("extensions", {}).get(ABORT, {}).get("call")
            return await self._stream(head, receive, send, abort)
        if path in OPERATIONS:
            token = self._access.check(head, TokenRole.SENDER)
            return self._stopping() or await self._posts.answer(head, receive, token)
        if path == "/ticket":
            return self._access.issue_ticket(self._access.check(head, TokenRole.READER))
        if path == "/health":
            return await self._healthy()
        self._access.check(head, TokenRole.READER)
        status = self._status()
        if path == "/status":
            return document(200, status)
        return Answer(200, metrics(status), ((b"content-type", METRICS_TYPE), NOT_STORED))

    def _allowed(self, path: str) -> bytes | None:
        """The methods of a path; None where there is none."""
        if path in OPERATIONS:
            return b"GET, POST, OPTIONS" if self._streams else b"POST, OPTIONS"
        if path == "/ticket":
            return b"POST, OPTIONS" if self._streams else None
        return _READING.encode() if path in FIGURES or path == "/health" else None

    async def _stream(
        self, head: RequestHead, receive: Receive, send: Send, abort: Callable[[], None] | None
    ) -> Answer | None:
        type_ = stream_type(head.text("accept"))
        if type_ is None or self._streams is None:
            return refusal(406, f"Streams are text/event-stream or {NDJSON}. Ask for one of them.")
        token = self._access.check_stream(head)
        if stopping := self._stopping():
            return stopping
        request = self._request(head, token, type_ == NDJSON)
        with self._access.stream(token):
            await self._streams.serve(request, receive, send, abort)
        return None

    def _request(self, head: RequestHead, token: AgentToken | None, is_ndjson: bool) -> StreamRequest:
        given = head.text("last-event-id")
        types, parents = names(head.query.get("types", ())), names(head.query.get("parents", ()))
        return StreamRequest(
            last_event_id=head.first("last_event_id") if given is None else given,
            since=head.first("since"),
            filter=OperationFilter.of(types, parents),
            limits=token.limits if token else EVERYTHING,
            ndjson=is_ndjson,
            expires_at=self._access.expires_at(token),
        )

    def _stopping(self) -> Answer | None:
        return try_again(503, 1, "The agent is stopping.", CLOSE) if self.is_stopping else None

    async def _healthy(self) -> Answer:
        if stopping := self._stopping():
            return stopping
        health = await self._health.check()
        if health.is_good:
            return document(200, {"status": "OK"})
        return document(503, {"status": "degraded", "problems": dict(health.problems)})
