"""The three callables of ASGI, and one that it lacks."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Abort = Callable[[], None]
"""Ends the connection at once, with what is not sent yet."""
