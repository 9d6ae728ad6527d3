"""The collection of objects as an agent's streams read it: pages in the order of tokens, deletes included.

One reader for all replications of an agent: it holds the oldest time that one of them reads, and is given up
when none reads. Once its term has passed, what reads under it ends, and the next replication has a new one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from struct import Struct
from threading import Lock

from tidemark.client.collection.collection import Collection
from tidemark.client.collection.opened import OpenedCollection
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.stored import FIRST_TOKEN, StoredRow
from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.oplog.agent.streams.sources.object_store import ObjectName, TimeForgotten
from tidemark.oplog.model.images import ObjectRow
from tidemark.outputs.errors import OutputMissing
from tidemark.outputs.reader_errors import Forgotten, NotYet, ReaderExpired

BEFORE_EVERYTHING = 0
"""The newest time of a collection that nothing was bound for: it has no objects, and needs no reader."""
KEYS_AT_ONCE = 200

_read_long = Struct(">q").unpack
_read_int = Struct(">i").unpack_from


class CollectionStore:
    """``ObjectStore`` in Cassandra. Threads may share it."""

    def __init__(self, open_collection: Callable[[], OpenedCollection]) -> None:
        """Connects on first use."""
        self._open = open_collection
        self._lock = Lock()
        self._reader: Collection | None = None
        self._times: list[int] = []

    @cached_property
    def _opened(self) -> OpenedCollection:
        return self._open()

    def newest(self) -> int:
        """See ``ObjectStore.newest``."""
        opened = self._opened
        try:
            return max(opened.frontier() - 1, BEFORE_EVERYTHING)
        except OutputMissing:
            with opened.asking():
                if opened.view.progress.control.bindings_head().newest is not None:
                    raise
            return BEFORE_EVERYTHING

    def holding(self, t: int) -> AbstractContextManager[None]:
        """See ``ObjectStore.holding``."""
        return nullcontext() if t == BEFORE_EVERYTHING else self._holding(t)

    def rows(self, t: int, token: int) -> Iterator[Sequence[ObjectRow]]:
        """See ``ObjectStore.rows``."""
        if t == BEFORE_EVERYTHING:
            return
        for page in self._held.stored(t, max(token, FIRST_TOKEN)):
            yield [object_row(row) for row in page]

    def versions(
        self, objects: Sequence[ObjectName], before: int, until: int
    ) -> Mapping[ObjectName, Sequence[ObjectRow]]:
        """See ``ObjectStore.versions``."""
        reader = self._held
        found: dict[ObjectName, Sequence[ObjectRow]] = {}
        for first in range(0, len(objects), KEYS_AT_ONCE):
            keys = {object_key(name): name for name in objects[first : first + KEYS_AT_ONCE]}
            for key, rows in reader.stored_versions(keys, before, until).items():
                found[keys[key]] = [object_row(row) for row in rows]
        return found

    def check(self) -> None:
        """See ``ObjectStore.check``."""
        self.newest()

    @contextmanager
    def _holding(self, t: int) -> Iterator[None]:
        with self._lock:
            self._enter(t)
        try:
            yield
        finally:
            with self._lock:
                self._times.remove(t)
                self._leave()

    def _enter(self, t: int) -> None:
        oldest = min([t, *self._times])
        try:
            self._hold(oldest)
        except ReaderExpired:
            self._close()  # replications that read under it find that out by themselves
            self._hold(oldest)
        self._times.append(t)

    def _hold(self, oldest: int) -> None:
        if self._reader is None:
            self._reader = Collection.of_opened(self._opened)
        try:
            self._reader.hold(oldest)
        except (Forgotten, NotYet) as error:
            if not self._times:
                self._close()
            raise TimeForgotten(str(error)) from error

    def _leave(self) -> None:
        if not self._times:
            self._close()
        elif self._reader is not None:
            try:
                self._reader.hold(min(self._times))
            except ReaderExpired:
                self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    @property
    def _held(self) -> Collection:
        """The reader that holds the times now."""
        with self._lock:
            if self._reader is None:
                raise ReaderExpired(*self._opened.name, self._opened.who)
            return self._reader


def object_key(name: ObjectName) -> Key:
    """The key of an object in a collection."""
    return name[0].encode(), name[1].encode()


def object_row(row: StoredRow) -> ObjectRow:
    """A row of a collection, whose columns are those of envelope ``oplog``, as that of an object."""
    event, timestamp, parents = row.values
    type_, id_ = row.key
    (at,) = _read_long(timestamp or b"")
    operation = ObjectOperation(
        EventName((event or b"").decode()), at, _texts(parents or b""), type_.decode(), id_.decode()
    )
    return ObjectRow(row.token, operation, row.t, row.partition, row.offset)


def _texts(cell: bytes) -> tuple[str, ...]:
    """The value of a ``list<text>``; an empty cell is an empty list."""
    if len(cell) <= 4:
        return ()
    (count,) = _read_int(cell)
    found, place = [], 4
    for _ in range(count):
        (length,) = _read_int(cell, place)
        place += 4
        found.append(cell[place : place + length].decode())
        place += length
    return tuple(found)
