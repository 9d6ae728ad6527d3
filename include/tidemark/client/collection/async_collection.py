"""``tidemark.AsyncCollection``: the same collection for programs with an event loop.

``Collection`` does the work in threads of the loop's executor. Rows and changes are read while they are
consumed: at most one thread at a time works for one of them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tidemark.async_facade import AsyncFacade, in_thread
from tidemark.client.collection.changes import Change, ChangesAt, ChangeStream
from tidemark.client.collection.collection import Collection
from tidemark.client.collection.rows import Rows
from tidemark.client.collection.times import Time

if TYPE_CHECKING:
    import pyarrow as pa

CHANGES_AT_ONCE = 500
"""The most changes that are fetched ahead."""

T = TypeVar("T")


class AsyncRows(AsyncFacade[Rows]):
    """``Rows`` for ``async for``."""

    @property
    def t(self) -> int:
        """The time."""
        return self._blocking.t

    @property
    def schema(self) -> "pa.Schema":
        """The columns of every batch."""
        return self._blocking.schema

    read_all = in_thread(Rows.read_all)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "pa.RecordBatch":
        (found,) = await _finished(lambda: list(islice(self._blocking, 1))) or (None,)
        if found is None:
            raise StopAsyncIteration
        return found


class AsyncChangesAt:
    """``ChangesAt`` for ``async for``.

    Attributes:
        t: The time.
    """

    def __init__(self, changes: ChangesAt) -> None:
        self.t, self._changes = changes.t, changes

    async def __aiter__(self) -> AsyncIterator[Change]:
        while found := await _finished(lambda: list(islice(self._changes, CHANGES_AT_ONCE))):
            for change in found:
                yield change


class AsyncChanges(AsyncFacade[ChangeStream]):
    """``ChangeStream`` for ``async for``. Cancelling a wait for the next changes closes the stream."""

    @property
    def through(self) -> int:
        """See ``ChangeStream.through``."""
        return self._blocking.through

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncChangesAt:
        (found,) = await _finished(lambda: list(islice(self._blocking, 1)), self._blocking.end) or (None,)
        if found is None:
            raise StopAsyncIteration
        return AsyncChangesAt(found)


class AsyncCollection(AsyncFacade[Collection]):
    """One collection, for ``async`` and ``await``.

    Parameters, results and errors of its methods are those of ``Collection``; ``since`` and ``frontier`` are
    methods.
    """

    def __init__(self, pipeline: str, writer: str | None = None, **options: Any) -> None:
        """Names the collection; the first call connects.

        Args:
            pipeline: The pipeline's name.
            writer: The writer's name; required where the pipeline has several collections.
            options: The keyword arguments of ``Collection``.

        Raises:
            NotACollection: The pipeline has no such collection.
        """
        super().__init__(Collection(pipeline, writer, **options))

    @classmethod
    def of_collection(cls, collection: Collection) -> Self:
        """A facade for a collection that blocking code uses too.

        Args:
            collection: The collection to use. Closing either one closes both.

        Returns:
            The collection for ``async`` and ``await``.
        """
        made = cls.__new__(cls)
        AsyncFacade.__init__(made, collection)
        return made

    get = in_thread(Collection.get)
    hold = in_thread(Collection.hold)

    async def since(self) -> int:
        """See ``Collection.since``."""
        return await asyncio.to_thread(lambda: self._blocking.since)

    async def frontier(self) -> int:
        """See ``Collection.frontier``."""
        return await asyncio.to_thread(lambda: self._blocking.frontier)

    async def rows(self, at: Time | None = None, *, schema: "pa.Schema | None" = None) -> AsyncRows:
        """See ``Collection.rows``."""
        return AsyncRows(await asyncio.to_thread(self._blocking.rows, at, schema=schema))

    async def changes(
        self, after: Time, *, until: Time | None = None, timeout: float | None = None
    ) -> AsyncChanges:
        """See ``Collection.changes``."""
        start = self._blocking.changes
        return AsyncChanges(await asyncio.to_thread(start, after, until=until, timeout=timeout))


async def _finished(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """Runs ``work`` in a thread, and waits for its end also when cancelled, after telling it to stop.

    Two threads must not use a generator at the same time.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait([running])
        raise
