"""Tidemark keeps a journal that lives in Kafka durable and queryable in Cassandra.

``tidemark.Journal`` and ``tidemark.AsyncJournal`` append to such a journal and read it; they are imported
when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.client.asynchronous import AsyncJournal
    from tidemark.client.events import Event
    from tidemark.client.journal import Journal

__all__ = ["AsyncJournal", "Event", "Journal"]

_PLACES = {"AsyncJournal": "asynchronous", "Event": "events", "Journal": "journal"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tidemark.client.{_PLACES[name]}"), name)
