"""``tidemark.Collection``: reads a collection as of any readable time, and follows its changes. Blocks.

Every answer comes from the rendition that is active at its time. A reader holds its times in the control
plane while it is open; once its term is over, every call raises ``ReaderExpired``, never a wrong answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from tidemark.client.collection.changes import ChangeStream
from tidemark.client.collection.ending import Ending
from tidemark.client.collection.errors import ReaderClosed
from tidemark.client.collection.held_times import HeldTimes
from tidemark.client.collection.opened import OpenedCollection
from tidemark.client.collection.rows import Rows
from tidemark.client.collection.settings import CollectionSettings, collection_settings
from tidemark.client.collection.times import Time, micros_of
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.stored import FIRST_TOKEN, StoredPage, StoredRow, TokenCursor
from tidemark.outputs.state.reader_lease import ReaderLease
from tidemark.pipeline.connections import Lookup

if TYPE_CHECKING:
    import pyarrow as pa

Opening = Callable[[], OpenedCollection]


class Collection:
    """One collection. Threads may share it, but not one stream of rows or changes.

    Every method may raise ``OutputMissing`` before the first delivery, ``CollectionUnreadable`` where
    Cassandra does not answer, and ``ReaderExpired`` where this process did not renew its term of 10 minutes.
    """

    def __init__(
        self,
        pipeline: str,
        writer: str | None = None,
        *,
        look_up: Lookup | None = None,
        who: str = "tidemark.Collection",
    ) -> None:
        """Names the collection; the first call connects.

        Args:
            pipeline: The pipeline's name.
            writer: The writer's name; required where the pipeline has several collections.
            look_up: Returns a connection by its name; None: connections come from the environment variables
                ``AIRFLOW_CONN_…``.
            who: The name under which operators see this reader, beside host and process.

        Raises:
            NotACollection: The pipeline has no such collection.
        """
        self._describe(collection_settings(pipeline, writer, look_up), who)

    def _describe(self, settings: CollectionSettings, who: str) -> None:
        name = (settings.pipeline.name, settings.declared.name)
        self._assemble(name, lambda: settings.open(who))

    @classmethod
    def of_settings(cls, settings: CollectionSettings, who: str) -> Self:
        """The collection that the settings describe.

        Args:
            settings: Its tables and connections.
            who: See ``Collection``.

        Returns:
            The collection, not connected yet.
        """
        made = cls.__new__(cls)
        made._describe(settings, who)
        return made

    @classmethod
    def of_opened(cls, opened: OpenedCollection) -> Self:
        """A collection that Tidemark's own code has opened.

        Args:
            opened: The opened collection.

        Returns:
            The collection.
        """
        made = cls.__new__(cls)
        made._assemble(opened.name, lambda: opened)
        return made

    def _assemble(self, name: tuple[str, str], opening: Opening) -> None:
        self._name, self._opening = name, opening
        self._parts: tuple[OpenedCollection, HeldTimes, Ending] | None = None
        self._streams: WeakSet[Rows | ChangeStream] = WeakSet()
        self._is_closed = False

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self._name[0]

    @property
    def writer(self) -> str:
        """The writer's name."""
        return self._name[1]

    @property
    def since(self) -> int:
        """The first readable time, in µs. Earlier ones are forgotten."""
        return self._opened.since()

    @property
    def frontier(self) -> int:
        """The first time that is not readable yet, in µs. Never goes back."""
        return self._opened.frontier()

    def get(self, key: Mapping[str, Any], at: Time | None = None) -> dict[str, Any] | None:
        """The row of a key as of a time.

        Args:
            key: A value for each column of the key, such as ``{"id": "7"}``.
            at: The time, in µs or as a date with a zone; None: the newest one, at most a second old. A time
                that was asked for stays readable until ``hold`` or ``close``.

        Returns:
            The row by column name, the key first; None where there is none at that time.

        Raises:
            NotYet: The time is not readable yet.
            Forgotten: The time is not readable any more.
            Tainted: The time will not be readable from this rendition.
            KeyRefused: The key has other columns or types.
            BadTime: ``at`` is no time.
        """
        time, opened = None if at is None else micros_of(at), self._opened

        def read(lease: ReaderLease, t: int) -> dict[str, Any] | None:
            with opened.asking(lease):
                return opened.rows_at(lease, t).get(key, t)

        with opened.asking():
            return self._held.read(time, read)

    def rows(self, at: Time | None = None, *, schema: "pa.Schema | None" = None) -> Rows:
        """The rows of all keys as of a time.

        Args:
            at: See ``get``. The rows hold their time until they are read to the end or closed.
            schema: The columns to read, and the precision of decimals, as an Arrow schema; None: all columns
                with their usual types.

        Returns:
            A stream of Arrow record batches with ``t``, ``schema``, ``read_all`` and ``close``.

        Raises:
            See ``get``.
        """
        rows = Rows(self._opened, None if at is None else micros_of(at), schema)
        self._streams.add(rows)
        return rows

    def stored(self, at: Time, token: int = FIRST_TOKEN) -> Iterator[Sequence[StoredRow]]:
        """What is stored of all keys as of a time, deletes included: for readers that go on where they were.

        Args:
            at: The time. It stays readable until ``hold`` or ``close``.
            token: The first token that is read, included. A reader that stops goes on with the last token
                that it has seen, and gets the rows of that token again.

        Returns:
            Pages of the newest row of each key, in the order of the token ring; no page is empty.

        Raises:
            See ``get``; while the pages are read.
        """
        time, cursor = micros_of(at), TokenCursor(token)

        def read(lease: ReaderLease, t: int) -> StoredPage:
            with self._opened.asking(lease):
                return self._opened.rows_at(lease, t).stored_page(t, cursor)

        while True:
            with self._opened.asking():
                page = self._held.read(time, read)
            if page.rows:
                yield page.rows
            if page.next is None:
                return
            cursor = page.next

    def stored_versions(
        self, keys: Iterable[Key], before: Time, until: Time
    ) -> Mapping[Key, Sequence[StoredRow]]:
        """What is stored of keys around some times.

        Args:
            keys: The cells of each key, as ``stored`` has them.
            before: A time, at most ``until``. It stays readable until ``hold`` or ``close``.
            until: The last time. Both are read from the rendition that is active at it.

        Returns:
            By key the rows after ``before`` up to ``until`` and the newest one up to ``before``, the newest
            first. Keys without any are left out.

        Raises:
            See ``get``.
        """
        first, last, wanted = micros_of(before), micros_of(until), list(keys)

        def read(lease: ReaderLease, t: int) -> Mapping[Key, Sequence[StoredRow]]:
            with self._opened.asking(lease):
                return self._opened.rows_at(lease, last).stored_versions(wanted, t, last)

        with self._opened.asking():
            return self._held.read(first, read)

    def changes(
        self, after: Time, *, until: Time | None = None, timeout: float | None = None
    ) -> ChangeStream:
        """The changes after a time, on and on as new bindings finish.

        Added to the state at ``after``, the changes up to any later time give the state at that time, also
        across handovers. A consumer that stores ``t`` of what it has processed goes on with ``after=t``.

        Args:
            after: The time whose state the changes continue: a readable one, or ``since``.
            until: The last time whose changes are wanted; None: no end.
            timeout: The most seconds to wait for later changes; 0 returns what is readable; None: no limit.

        Returns:
            A stream of ``ChangesAt``: for each time ``t`` an iterator of changes (row, t, ±1).

        Raises:
            See ``get``. ``NotYet`` is also raised where ``until`` was not readable within ``timeout``.
        """
        last = None if until is None else micros_of(until)
        stream = ChangeStream(self._opened, micros_of(after), last, timeout)
        self._streams.add(stream)
        return stream

    def hold(self, t: Time) -> None:
        """Keeps the times from ``t`` on readable while the collection is open, and gives up earlier ones.

        Args:
            t: The time.

        Raises:
            See ``get``.
        """
        opened = self._opened
        with opened.asking():
            self._held.hold(micros_of(t))

    def close(self) -> None:
        """Gives up all times that it holds. Sessions with Cassandra are shared by the process and stay."""
        self._is_closed = True
        for stream in list(self._streams):
            stream.close()
        if self._parts is not None:
            self._parts[2].now()

    @property
    def _opened(self) -> OpenedCollection:
        return self._all_parts[0]

    @property
    def _held(self) -> HeldTimes:
        return self._all_parts[1]

    @property
    def _all_parts(self) -> tuple[OpenedCollection, HeldTimes, Ending]:
        if self._is_closed:
            raise ReaderClosed(*self._name)
        if self._parts is None:
            opened = self._opening()
            held = HeldTimes(opened)
            self._parts = opened, held, Ending(self, held.close)
        return self._parts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
