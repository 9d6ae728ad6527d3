"""``tidemark.AsyncJournal``: the same journal for programs with an event loop.

``Journal`` does the work in threads of the loop's executor. A read uses at most one thread at a time, and
fetches more only when the caller asks for it. A record whose append is cancelled may reach Kafka anyway.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from functools import partial
from itertools import islice
from typing import Any, Self, TypeVar

from tidemark.async_facade import AsyncFacade, in_thread
from tidemark.client.events import JournalEvent
from tidemark.client.journal import Journal
from tidemark.client.tail.head_cache import CacheInfo

EVENTS_AT_ONCE = 500
"""The most events that a read fetches ahead; it begins with one, and doubles."""

T = TypeVar("T")


class AsyncJournal(AsyncFacade[Journal]):
    """One topic's journal, for ``async`` and ``await``.

    Parameters, results and errors of its methods are those of ``Journal``.
    """

    def __init__(self, topic: str, **options: Any) -> None:
        """Names the journal; the first call connects.

        Args:
            topic: The journal's Kafka topic.
            options: The keyword arguments of ``Journal``.

        Raises:
            BadInput: The topic's name or the origin is not valid.
        """
        super().__init__(Journal(topic, **options))

    @property
    def topic(self) -> str:
        """The journal's Kafka topic."""
        return self._blocking.topic

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
        """A facade for a journal that blocking code uses too.

        Args:
            journal: The journal to use. Closing either one closes both.

        Returns:
            The journal for ``async`` and ``await``.
        """
        made = cls.__new__(cls)
        AsyncFacade.__init__(made, journal)
        return made

    append = in_thread(Journal.append)
    delete = in_thread(Journal.delete)
    purge = in_thread(Journal.purge)
    pointer = in_thread(Journal.pointer)
    mark = in_thread(Journal.mark)

    def cache_info(self) -> CacheInfo:
        """See ``Journal.cache_info``. Does not wait for anything."""
        return self._blocking.cache_info()

    def read(self, key: str, from_seq_nr: int = 1) -> AsyncIterator[JournalEvent]:
        """The entity's events: ``async for event in journal.read(key)``.

        Args:
            key: The entity's key.
            from_seq_nr: The sequence number of the first event to return.

        Returns:
            An asynchronous iterator. Its events and errors are those of ``Journal.read``.
        """
        return _stream(self._blocking.read(key, from_seq_nr))


async def _stream(events: Generator[JournalEvent]) -> AsyncIterator[JournalEvent]:
    size = 1
    try:
        while True:
            found, error = await _to_its_end(partial(_next_events, events, size))
            for event in found:
                yield event
            if error is not None:
                raise error
            if len(found) < size:
                return
            size = min(2 * size, EVENTS_AT_ONCE)
    finally:
        await _to_its_end(events.close)


def _next_events(events: Generator[JournalEvent], size: int) -> tuple[list[JournalEvent], Exception | None]:
    """Up to ``size`` events, and the error that ended the read; None without one."""
    found: list[JournalEvent] = []
    try:
        for event in islice(events, size):
            found.append(event)
    except Exception as error:
        return found, error
    return found, None


async def _to_its_end(work: Callable[[], T]) -> T:
    """Runs ``work`` in a thread, and waits for its end also when cancelled.

    Two threads must not use a generator at the same time.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
