"""Middleware that handles one writing request at a time, for an API server whose database is SQLite.

Airflow 3.3 commits its audit log on the server's event loop. SQLite allows one writing connection. If that
connection belongs to another request of the same server, that request needs the event loop to finish, and the
event loop waits for the database: both wait until SQLite times out, and the server answers no request
meanwhile. The middleware refuses nothing and reads no body. Databases that lock rows do not need it.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

READING = frozenset({"GET", "HEAD", "OPTIONS"})


class SerializeWrites:
    """ASGI middleware: one request that may write at a time, any number of requests that only read."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; one that may write waits for the writing request before it."""
        if scope["type"] != "http" or scope["method"] in READING:
            await self._app(scope, receive, send)
            return
        async with self._lock:
            await self._app(scope, receive, send)


def is_needed(database: str) -> bool:
    """Whether an Airflow with this database (its SQLAlchemy URL) needs the middleware."""
    return database.startswith("sqlite")
