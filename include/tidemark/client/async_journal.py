"""``tidemark.AsyncJournal``: the same journal for programs with an event loop.

The work is done by ``Journal`` in threads of the loop's executor. A read has at most one of them at a time,
and goes on only when it is asked for more. What is cancelled while it is sent may arrive all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, Self, TypeVar

from tidemark.client.events import Event, JournalEvent
from tidemark.client.journal import Journal
from tidemark.kafka.producer import Placed

EVENTS_AT_ONCE = 500
"""What a read may have ready before it is asked for; it begins with one event, and doubles."""

T = TypeVar("T")


class AsyncJournal:
    """One topic's journal, for ``async`` and ``await``; arguments and errors are those of ``Journal``."""

    def __init__(self, topic: str, **options: Any) -> None:
        """Name the journal; nothing is connected to before it is used.

        Args:
            topic: The Kafka topic whose entities these are.
            options: The keyword arguments of ``Journal``.
        """
        self._journal = Journal(topic, **options)

    @classmethod
    def of_pipeline(cls, name: str, **options: Any) -> Self:
        """The journal that a pipeline replicates.

        Args:
            name: The pipeline's name.
            options: The keyword arguments of ``Journal.of_pipeline``.

        Returns:
            The journal, not connected yet.
        """
        return cls.of_journal(Journal.of_pipeline(name, **options))

    @classmethod
    def of_journal(cls, journal: Journal) -> Self:
        """The same journal, also for an event loop.

        Args:
            journal: The journal to use; closing either closes both.

        Returns:
            The journal for ``async`` and ``await``.
        """
        made = cls.__new__(cls)
        made._journal = journal
        return made

    @property
    def topic(self) -> str:
        """The topic whose entities these are."""
        return self._journal.topic

    async def append(
        self,
        key: str,
        events: Iterable[Event],
        *,
        expire_after: str | timedelta | None = None,
        metadata: Any = None,
        payload_metadata: Any = None,
        headers: Mapping[str, str] | None = None,
        expected_last: int | None = None,
    ) -> Placed:
        """Append events to an entity, all or none; parameters, result and errors of ``Journal.append``.

        Cancelled while it is sent, the record may arrive all the same.
        """
        return await asyncio.to_thread(
            self._journal.append,
            key,
            events,
            expire_after=expire_after,
            metadata=metadata,
            payload_metadata=payload_metadata,
            headers=headers,
            expected_last=expected_last,
        )

    async def delete(self, key: str, to: int, *, headers: Mapping[str, str] | None = None) -> Placed | None:
        """Delete the entity's first events; parameters, result and errors of ``Journal.delete``."""
        return await asyncio.to_thread(self._journal.delete, key, to, headers=headers)

    async def purge(self, key: str, *, headers: Mapping[str, str] | None = None) -> Placed:
        """Remove the entity; parameters, result and errors of ``Journal.purge``."""
        return await asyncio.to_thread(self._journal.purge, key, headers=headers)

    async def pointer(self, key: str) -> int | None:
        """The number of the entity's last event; parameters, result and errors of ``Journal.pointer``."""
        return await asyncio.to_thread(self._journal.pointer, key)

    async def mark(self, key: str) -> Placed:
        """Leave a mark in the entity's partition; parameters, result and errors of ``Journal.mark``."""
        return await asyncio.to_thread(self._journal.mark, key)

    def read(self, key: str, from_seq_nr: int = 1) -> AsyncIterator[JournalEvent]:
        """The entity's events: ``async for event in journal.read(key)``.

        Args:
            key: The entity's key.
            from_seq_nr: The number of the first event that is wanted.

        Returns:
            An asynchronous iterator; what it gives and raises is that of ``Journal.read``.
        """
        return _stream(self._journal.read(key, from_seq_nr))

    async def close(self) -> None:
        """Close the clients of Kafka; see ``Journal.close``."""
        await asyncio.to_thread(self._journal.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _stream(events: Generator[JournalEvent]) -> AsyncIterator[JournalEvent]:
    size = 1
    try:
        while True:
            found, error = await _to_its_end(partial(_some, events, size))
            for event in found:
                yield event
            if error is not None:
                raise error
            if len(found) < size:
                return
            size = min(2 * size, EVENTS_AT_ONCE)
    finally:
        await _to_its_end(events.close)


def _some(events: Generator[JournalEvent], size: int) -> tuple[list[JournalEvent], Exception | None]:
    """The next events, and what kept more from coming."""
    found: list[JournalEvent] = []
    try:
        for event in islice(events, size):
            found.append(event)
    except Exception as error:
        return found, error
    return found, None


async def _to_its_end(work: Callable[[], T]) -> T:
    """Work in a thread; also when cancelled, it is waited for: two threads must not share a generator."""
    under_way = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(under_way)
    except asyncio.CancelledError:
        await asyncio.wait([under_way])
        raise
