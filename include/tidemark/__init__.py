"""Tidemark keeps a journal that lives in Kafka durable and queryable in Cassandra.

``tidemark.Journal`` and ``tidemark.AsyncJournal`` append to such a journal and read it; ``tidemark.Work`` and
``tidemark.AsyncWork`` ask a work journal for work, and do it. They are imported when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.client.asynchronous import AsyncJournal
    from tidemark.client.events import Event
    from tidemark.client.journal import Journal
    from tidemark.work.asynchronous import AsyncWork
    from tidemark.work.client import Work
    from tidemark.work.items import WorkItem
    from tidemark.work.work_entry import WorkEntry

__all__ = ["AsyncJournal", "AsyncWork", "Event", "Journal", "Work", "WorkEntry", "WorkItem"]

_PLACES = {
    "AsyncJournal": "client.asynchronous",
    "AsyncWork": "work.asynchronous",
    "Event": "client.events",
    "Journal": "client.journal",
    "Work": "work.client",
    "WorkEntry": "work.work_entry",
    "WorkItem": "work.items",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tidemark.{_PLACES[name]}"), name)
