"""Writes the rows of messages: each its own row, and for every key and time one entry among the changes.

Rows are collected before they are written: the more rows of a key share a batch, the fewer writes Cassandra
has to apply. Of each collected lot, the changes are acknowledged before the first row is sent, so that there
is never a row without its change. Writing again writes the same cells with the same write times.
"""

from collections.abc import Callable, Iterable

from tidemark.cassandra.bulk.writer import BulkWriter
from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.tables.codec.cells import row_cells
from tidemark.collection.tables.tables import CollectionTables
from tidemark.faults import FaultPoint, at_once, reach

ROWS_TOGETHER, BYTES_TOGETHER = at_once(250_000), 64 * 2**20
"""The rows, and their bytes, that are collected before they are written: as in a journal."""


def write_rows(
    tables: CollectionTables, rows: Iterable[CollectionRow], check: Callable[[], None] | None = None
) -> int:
    """Writes rows, waits until all are acknowledged and returns their number.

    ``check`` is called before every batch; what it raises ends the writing.
    """
    with tables.bulk(check) as bulk:
        writer = RowWriter(tables, bulk)
        writer.add(rows)
        return writer.finish()


class _Lot:
    """The collected rows of one key.

    Attributes:
        key: The key's own cells.
        rows: The encoded rows.
        changed_at: The time of the last change that was noted for the key; None for none.
    """

    __slots__ = ("changed_at", "key", "rows")

    def __init__(self, key: bytes) -> None:
        self.key, self.rows = key, list[bytes]()
        self.changed_at: int | None = None


class RowWriter:
    """Collects rows and writes them by key. Belongs to one thread."""

    def __init__(self, tables: CollectionTables, bulk: BulkWriter) -> None:
        self._tables, self._bulk = tables, bulk
        self._rows: dict[Key, _Lot] = {}
        self._changes: dict[tuple[int, int], set[bytes]] = {}
        """Encoded keys by shard and time."""
        self._count = self._bytes = self._written = 0

    def add(self, rows: Iterable[CollectionRow]) -> None:
        """Adds rows in any order. Writes what is collected whenever it is enough."""
        waiting = self._rows
        for row in rows:
            key, t = row.key, row.t
            lot = waiting.get(key)
            if lot is None:
                lot = waiting[key] = _Lot(key_bytes(key))
            if t != lot.changed_at:
                lot.changed_at = t
                self._changes.setdefault((row.shard, t), set()).add(lot.key)
            cells = row_cells(row, lot.key)
            lot.rows.append(cells)
            self._count += 1
            self._bytes += len(cells)
            if self._count >= ROWS_TOGETHER or self._bytes >= BYTES_TOGETHER:
                self._write()

    def finish(self) -> int:
        """Writes the rest, and returns the number of all rows that are written and acknowledged."""
        self._write()
        self._bulk.flush()
        return self._written

    def _write(self) -> None:
        changes, rows = self._changes, self._rows
        for (shard, t), keys in changes.items():
            self._tables.add_changes(self._bulk, shard, t, keys)
        changes.clear()
        self._bulk.flush()
        reach(FaultPoint.COLLECTION_CHANGES_WRITTEN)
        while rows:
            self._tables.add_rows(self._bulk, rows.popitem()[1].rows)
        self._written += self._count
        self._count = self._bytes = 0
