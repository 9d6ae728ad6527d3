"""Middleware that refuses requests to ``<pipeline>.resume`` without a reason, before a run is started.

Airflow validates each field of a form on its own and cannot express that one field requires another. This
middleware therefore checks requests that trigger a resume or answer its question. A request that lacks a
field gets the status 400 with the missing field, which the form shows, and the question stays open. Other
requests pass unread, and no request is ever changed.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from tidemark_airflow.tasks.resume_request import missing_of_answer, missing_of_run

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_RUN = re.compile(r"/dags/[^/]+\.resume/dagRuns/?$")
_ANSWER = re.compile(r"/dags/[^/]+\.resume/dagRuns/.+/taskInstances/ask/-?\d+/hitlDetails/?$")
BAD_REQUEST = 400


class RequireReason:
    """ASGI middleware: a request to a resume that lacks a reason is refused."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with the missing field."""
        if not _is_checked(scope):
            await self._app(scope, receive, send)
            return
        messages, body = await _read(receive)
        if missing := missing_of(scope["path"], body):
            await _refuse(send, f"Nothing was done: {missing}")
            return

        async def again() -> MutableMapping[str, Any]:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, again, send)


def missing_of(path: str, body: bytes) -> str | None:
    """The field that a request lacks; None where it has all, or where Airflow will refuse it itself."""
    try:
        sent = json.loads(body)
    except ValueError:
        return None
    if not isinstance(sent, Mapping):
        return None
    if _RUN.search(path):
        return missing_of_run(_mapping(sent.get("conf")))
    return missing_of_answer(sent.get("chosen_options"), _mapping(sent.get("params_input")))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_checked(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    wanted = {"POST": _RUN, "PATCH": _ANSWER}.get(scope["method"])
    return wanted is not None and wanted.search(scope["path"]) is not None


async def _read(receive: Receive) -> tuple[list[MutableMapping[str, Any]], bytes]:
    """The whole body of a request, and the ASGI messages that carried it."""
    messages, body = [], b""
    while True:
        message = await receive()
        messages.append(message)
        body += message.get("body", b"")
        if message["type"] != "http.request" or not message.get("more_body"):
            return messages, body


async def _refuse(send: Send, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": BAD_REQUEST, "headers": headers})
    await send({"type": "http.response.body", "body": body})
