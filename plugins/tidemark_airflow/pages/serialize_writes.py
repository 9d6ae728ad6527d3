"""Requests that may change something take turns, in an API server whose database is SQLite.

Airflow 3.3 notes what a person does with a commit on the server's event loop. SQLite lets one connection
write; the one that is writing may belong to another request of the same server, which needs that loop to come
to its end. Then both wait until the database gives up, and nobody is answered, neither people nor tasks.
Refuses nothing and does not look at what is asked. Databases that lock rows do without it.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

READING = frozenset({"GET", "HEAD", "OPTIONS"})


class ChangesInTurn:
    """Middleware: one request that may change something at a time, any number that only read."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; one that may change something, when the one before has been committed."""
        if scope["type"] != "http" or scope["method"] in READING:
            await self._app(scope, receive, send)
            return
        async with self._turn:
            await self._app(scope, receive, send)


def needed(database: str) -> bool:
    """Whether an Airflow with this database (its SQLAlchemy address) needs it."""
    return database.startswith("sqlite")
