"""Tidemark keeps a journal that lives in Kafka durable and queryable in Cassandra.

``tidemark.Journal`` and ``tidemark.AsyncJournal`` append to such a journal and read it (``Event``).
``tidemark.Collection`` and ``tidemark.AsyncCollection`` read a collection as of any time.
``tidemark.Work`` and ``tidemark.AsyncWork`` insert entries into a work journal and process them
(``WorkItem``, ``WorkEntry``). ``tidemark.OpLog`` and ``tidemark.AsyncOpLog`` follow the operations of an
agent (``OpLogOperation``, ``OpLogReset``, ``OpLogLive``). All of them are imported on first use.
"""

from typing import TYPE_CHECKING

from tidemark.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from tidemark.client.async_journal import AsyncJournal
    from tidemark.client.collection.async_collection import AsyncCollection
    from tidemark.client.collection.collection import Collection
    from tidemark.client.events import Event
    from tidemark.client.journal import Journal
    from tidemark.oplog.consumer.async_oplog import AsyncOpLog
    from tidemark.oplog.consumer.items import OpLogLive, OpLogOperation, OpLogReset
    from tidemark.oplog.consumer.oplog import OpLog
    from tidemark.work.async_client import AsyncWork
    from tidemark.work.claimed_item import WorkItem
    from tidemark.work.client import Work
    from tidemark.work.model.entry_view import WorkEntry

__all__ = [
    "AsyncCollection",
    "AsyncJournal",
    "AsyncOpLog",
    "AsyncWork",
    "Collection",
    "Event",
    "Journal",
    "OpLog",
    "OpLogLive",
    "OpLogOperation",
    "OpLogReset",
    "Work",
    "WorkEntry",
    "WorkItem",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "AsyncCollection": "client.collection.async_collection",
        "AsyncJournal": "client.async_journal",
        "AsyncOpLog": "oplog.consumer.async_oplog",
        "AsyncWork": "work.async_client",
        "Collection": "client.collection.collection",
        "Event": "client.events",
        "Journal": "client.journal",
        "OpLog": "oplog.consumer.oplog",
        "OpLogLive": "oplog.consumer.items",
        "OpLogOperation": "oplog.consumer.items",
        "OpLogReset": "oplog.consumer.items",
        "Work": "work.client",
        "WorkEntry": "work.model.entry_view",
        "WorkItem": "work.claimed_item",
    },
)
