"""Tidemark keeps a journal that lives in Kafka durable and queryable in Cassandra.

``tidemark.Journal`` and ``tidemark.AsyncJournal`` append to such a journal and read it; ``tidemark.Work`` and
``tidemark.AsyncWork`` ask a work journal for work, and do it. They are imported when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.client.async_journal import AsyncJournal
    from tidemark.client.events import Event
    from tidemark.client.journal import Journal
    from tidemark.work.async_client import AsyncWork
    from tidemark.work.claimed_item import WorkItem
    from tidemark.work.client import Work
    from tidemark.work.model.entry_view import WorkEntry

__all__ = ["AsyncJournal", "AsyncWork", "Event", "Journal", "Work", "WorkEntry", "WorkItem"]

_PLACES = {
    "AsyncJournal": "client.async_journal",
    "AsyncWork": "work.async_client",
    "Event": "client.events",
    "Journal": "client.journal",
    "Work": "work.client",
    "WorkEntry": "work.model.entry_view",
    "WorkItem": "work.claimed_item",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tidemark.{_PLACES[name]}"), name)
