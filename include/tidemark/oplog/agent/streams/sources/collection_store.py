"""The collection of objects as an agent's streams read it: pages in the order of tokens, deletes included.

Every page is read under the agent's capability, which is checked afterwards: a page of a time that may have
been forgotten meanwhile is not given out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from struct import Struct
from typing import cast

from tidemark.client.collection.opened import OpenedCollection, newest_time
from tidemark.client.collection.rendition_rows import TableRows
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.stored import (
    FIRST_TOKEN,
    StoredRow,
    TokenCursor,
    stored_page,
    stored_versions,
)
from tidemark.collection.tables.tables import CollectionTables
from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.oplog.agent.streams.sources.object_store import ObjectName
from tidemark.oplog.agent.streams.sources.oldest_hold import OldestHold
from tidemark.oplog.model.images import ObjectRow
from tidemark.outputs.errors import OutputMissing
from tidemark.outputs.state.reader_lease import ReaderLease

BEFORE_EVERYTHING = 0
"""The newest time of a collection that nothing was bound for."""
KEYS_AT_ONCE = 200

_read_long = Struct(">q").unpack
_read_int = Struct(">i").unpack_from


class CollectionStore:
    """``ObjectStore`` in Cassandra. Threads may share it."""

    def __init__(self, open_collection: Callable[[], OpenedCollection]) -> None:
        """Connects on first use."""
        self._open = open_collection
        self._hold = OldestHold(lambda: self._opened)

    @cached_property
    def _opened(self) -> OpenedCollection:
        return self._open()

    def newest(self) -> int:
        """See ``ObjectStore.newest``."""
        opened = self._opened
        with opened.asking():
            try:
                return newest_time(opened.view.advanced())
            except OutputMissing:
                if opened.view.progress.control.bindings_head().newest is not None:
                    raise
                return BEFORE_EVERYTHING

    def holding(self, t: int) -> AbstractContextManager[None]:
        """See ``ObjectStore.holding``."""
        return nullcontext() if t == BEFORE_EVERYTHING else self._hold.holding(t)

    def rows(self, t: int, token: int) -> Iterator[Sequence[ObjectRow]]:
        """See ``ObjectStore.rows``."""
        cursor: TokenCursor | None = TokenCursor(max(token, FIRST_TOKEN))
        while cursor is not None and t > BEFORE_EVERYTHING:
            lease = self._hold.lease()
            tables = self._tables_at(lease, t)
            decode = _Decoder(tables.place).decode
            with self._opened.asking(lease):
                page = stored_page(tables, t, cursor)
            self._hold.lease()
            cursor = page.next
            if page.rows:
                yield [decode(row) for row in page.rows]

    def versions(
        self, objects: Sequence[ObjectName], before: int, until: int
    ) -> Mapping[ObjectName, Sequence[ObjectRow]]:
        """See ``ObjectStore.versions``."""
        lease = self._hold.lease()
        tables = self._tables_at(lease, until)
        decoder = _Decoder(tables.place)
        keys = {decoder.key(name): name for name in objects}
        found: dict[ObjectName, Sequence[ObjectRow]] = {}
        ordered = list(keys)
        for first in range(0, len(ordered), KEYS_AT_ONCE):
            with self._opened.asking(lease):
                chunk = ordered[first : first + KEYS_AT_ONCE]
                versions = stored_versions(tables, chunk, before, until)
            found |= {keys[key]: [decoder.decode(row) for row in rows] for key, rows in versions.items()}
        self._hold.lease()
        return found

    def check(self) -> None:
        """See ``ObjectStore.check``."""
        self.newest()

    def _tables_at(self, lease: ReaderLease, t: int) -> CollectionTables:
        """The tables that have a time."""
        opened = self._opened
        with opened.asking(lease):
            return cast("TableRows", opened.rows_at(lease, t)).tables


class _Decoder:
    """Stored rows as rows of objects. The columns are those of envelope ``oplog``, in any order."""

    def __init__(self, place: CollectionPlace) -> None:
        self._type, self._id = (place.key_columns.index(name) for name in ("type", "id"))
        names = ("event", "timestamp", "parents")
        self._event, self._timestamp, self._parents = (place.data_columns.index(name) for name in names)

    def key(self, name: ObjectName) -> Key:
        """The key of an object."""
        found = [b"", b""]
        found[self._type], found[self._id] = name[0].encode(), name[1].encode()
        return tuple(found)

    def decode(self, row: StoredRow) -> ObjectRow:
        """A row of an object."""
        values = row.values
        event = EventName((values[self._event] or b"").decode())
        (timestamp,) = _read_long(values[self._timestamp] or b"")
        operation = ObjectOperation(
            event,
            timestamp,
            _texts(values[self._parents] or b""),
            row.key[self._type].decode(),
            row.key[self._id].decode(),
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
