"""The rows of a collection's renditions, as its readers ask for them.

Which rendition a time belongs to, and whether it may be read at all, is decided before: nothing here judges a
time. Tests put rows in memory in the place of Cassandra's tables.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import pyarrow as pa

from tidemark.cassandra.driver import Session
from tidemark.cassandra.size import estimated_bytes, ring_tokens
from tidemark.cassandra.token_ranges import cut_ring
from tidemark.client.collection.switch import differences
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.changes import changes
from tidemark.collection.tables.codec.python_rows import PythonRow
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.reading import CollectionReader
from tidemark.collection.tables.stored import (
    StoredPage,
    StoredRow,
    TokenCursor,
    stored_page,
    stored_versions,
)
from tidemark.collection.tables.tables import CollectionTables
from tidemark.outputs.model.reading import Switch
from tidemark.outputs.model.rendition import Rendition

PIECES = 256
"""The least number of ranges in which two renditions are compared; memory holds one."""
PIECE_BYTES = 4 * 2**20
"""The size of such a range in a larger collection."""


class RowChange(NamedTuple):
    """A row that appeared (+1) or disappeared (−1)."""

    row: PythonRow
    diff: int


class RenditionRows(Protocol):
    """The rows of one rendition."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of ``rows`` with their usual types."""

    def get(self, key: Mapping[str, Any], at: int) -> PythonRow | None:
        """The row of a key as of a time; None where there is none."""

    def rows(self, at: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of all keys as of a time."""

    def changes(self, t: int) -> Iterator[RowChange]:
        """What changed at a time."""

    def stored_page(self, at: int, cursor: TokenCursor) -> StoredPage:
        """A page of what is stored as of a time, deletes included."""

    def stored_versions(
        self, keys: Iterable[Key], before: int, until: int
    ) -> Mapping[Key, Sequence[StoredRow]]:
        """Rows of keys; see ``Collection.stored_versions``."""


class Renditions(Protocol):
    """The renditions of one collection."""

    def rows_of(self, rendition: Rendition) -> RenditionRows:
        """The rows of one of them."""

    def differences(self, switch: Switch) -> Iterator[RowChange]:
        """What the new rendition has at a handover, less what the old one had before it."""


@dataclass(frozen=True)
class TableRows:
    """``RenditionRows`` in Cassandra's tables."""

    tables: CollectionTables
    reader: CollectionReader

    @classmethod
    def of(cls, tables: CollectionTables) -> "TableRows":
        """The rows of these tables. Raises CollectionMissing."""
        return cls(tables, CollectionReader(tables))

    @property
    def schema(self) -> pa.Schema:
        """See ``RenditionRows.schema``."""
        return self.reader.schema

    def get(self, key: Mapping[str, Any], at: int) -> PythonRow | None:
        """See ``RenditionRows.get``. Raises KeyRefused."""
        return self.reader.get(key, at)

    def rows(self, at: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See ``RenditionRows.rows``."""
        return self.reader.rows(at, schema)

    def stored_page(self, at: int, cursor: TokenCursor) -> StoredPage:
        """See ``RenditionRows.stored_page``."""
        return stored_page(self.tables, at, cursor)

    def stored_versions(
        self, keys: Iterable[Key], before: int, until: int
    ) -> Mapping[Key, Sequence[StoredRow]]:
        """See ``RenditionRows.stored_versions``."""
        return stored_versions(self.tables, keys, before, until)

    def changes(self, t: int) -> Iterator[RowChange]:
        """See ``RenditionRows.changes``."""
        for one in changes(self.tables, t):
            yield RowChange(self.reader.decode(cast("Any", one.row)), one.diff)


class TableRenditions:
    """``Renditions`` in Cassandra. Connects on first use.

    Args:
        session: Opens the session with Cassandra.
        place_of: The tables of a rendition.
    """

    def __init__(
        self, session: Callable[[], Session], place_of: Callable[[Rendition], CollectionPlace]
    ) -> None:
        self._session, self._place_of = session, place_of
        self._opened: dict[tuple[int, int], TableRows] = {}
        """By process and number of the rendition."""

    def rows_of(self, rendition: Rendition) -> TableRows:
        """See ``Renditions.rows_of``. Raises CollectionMissing, and RenditionUnusable."""
        key = (os.getpid(), rendition.number)
        if key not in self._opened:
            tables = CollectionTables.of(self._session(), self._place_of(rendition))
            self._opened[key] = TableRows.of(tables)
        return self._opened[key]

    def differences(self, switch: Switch) -> Iterator[RowChange]:
        """See ``Renditions.differences``."""
        before, after = self.rows_of(switch.before), self.rows_of(switch.after)
        place, session = before.tables.place, before.tables.session
        size = estimated_bytes(session, place.keyspace, place.name)
        parts = cut_ring(ring_tokens(session), max(PIECES, size // PIECE_BYTES))
        schemas = place.schema, after.tables.place.schema
        for row, is_new in differences(
            schemas,
            parts,
            lambda part: before.reader.stored(switch.h - 1, [part]),
            lambda part: after.reader.stored(switch.h, [part]),
        ):
            yield RowChange((after if is_new else before).reader.decode(row), 1 if is_new else -1)
