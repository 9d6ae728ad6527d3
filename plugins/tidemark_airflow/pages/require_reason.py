"""Refuses what operators send to ``<pipeline>.resume`` without saying why, before anything is started.

Airflow checks every field of a form by itself; that one of them needs another it cannot express. So requests
that trigger a resume or answer its question are looked at here: what is missing is said in an answer of the
API, which the form shows, and the question stays open. Looks at no other requests, and never changes one.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from tidemark_airflow.answers import missing_of_answer, missing_of_run

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_RUN = re.compile(r"/dags/[^/]+\.resume/dagRuns/?$")
_ANSWER = re.compile(r"/dags/[^/]+\.resume/dagRuns/.+/taskInstances/ask/-?\d+/hitlDetails/?$")
BAD_REQUEST = 400


class SayWhy:
    """Middleware: requests to a resume that lack a reason are refused."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with what is missing."""
        if not _is_looked_at(scope):
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
    """What a request lacks; None where nothing is missing. What is not understood is Airflow's to judge."""
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


def _is_looked_at(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    wanted = {"POST": _RUN, "PATCH": _ANSWER}.get(scope["method"])
    return wanted is not None and wanted.search(scope["path"]) is not None


async def _read(receive: Receive) -> tuple[list[MutableMapping[str, Any]], bytes]:
    """All of a request's body, and the messages it came in."""
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
