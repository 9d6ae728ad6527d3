"""Rows of a collection as the bound values of statements, and stored cells as rows. Uses no session.

A null is left unset: the row of a message never had another version, so there is no older value that a null
would have to hide, and an unset cell leaves no tombstone. What was written without a value is read as null.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct

from tidemark.cassandra import cells
from tidemark.cassandra.cells import UNSET
from tidemark.cassandra.scan.raw_pages import Row
from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.tables.codec.canonical import canonical_of
from tidemark.collection.tables.errors import RowDamaged
from tidemark.collection.tables.layout import GONE, MESSAGE_ID, OWN_COLUMNS, CollectionPlace, T
from tidemark.collection.tables.versions import Version
from tidemark.outputs.model.digest import shard_of

_length = Struct(">i").pack
_pack_place = Struct(">iqiqi?iiiq").pack
"""t, message_id, gone, partition, offset."""
_pack_version = Struct(">iqiq").pack
_pack_shard = Struct(">iiiq").pack
_pack_long = Struct(">iq").pack
_read_long = Struct(">q").unpack
_read_int = Struct(">i").unpack
_topic = lru_cache(maxsize=1024)(cells.text)


def row_cells(row: CollectionRow, key: bytes) -> bytes:
    """The values of an INSERT of a row. ``key`` is its ``key_bytes``, which are the cells of its key."""
    _, values, t, message_id, write_time, gone, topic, partition, offset, _ = row
    parts = [key, _pack_place(8, t, 8, message_id, 1, gone, 4, partition, 8, offset), _topic(topic)]
    parts += [UNSET if value is None else _length(len(value)) + value for value in values]
    parts.append(_pack_long(8, write_time))
    return b"".join(parts)


def change_cells(shard: int, t: int, key: bytes) -> bytes:
    """The values of an INSERT of a change of the key with these ``key_bytes``.

    Its write time is the time of the binding, so that it does not depend on which of the key's messages were
    written together.
    """
    return b"".join((_pack_shard(4, shard, 8, t), key, _pack_long(8, t)))


def version_cells(key: Key, t: int, message_id: int, write_time: int) -> bytes:
    """The values of a DELETE of the row of a message, or of the rows before it."""
    return b"".join((_pack_long(8, write_time), key_bytes(key), _pack_version(8, t, 8, message_id)))


def changes_cells(shard: int, t: int) -> bytes:
    """The values of a DELETE of what there is about a time in one shard, at the time of its entries."""
    return _pack_long(8, t) + _pack_shard(4, shard, 8, t)


def integer(cell: bytes) -> int:
    """The value of an ``int`` or a ``bigint``."""
    found: int = (_read_int if len(cell) == 4 else _read_long)(cell)[0]
    return found


def is_true(cell: bytes | None) -> bool:
    """The value of a ``boolean``."""
    return cell == b"\x01"


class StoredRows:
    """Decodes stored rows of one collection."""

    def __init__(self, place: CollectionPlace) -> None:
        self._place, self._shards = place, place.schema.shards
        self._width = len(place.schema.key)
        self._canonical = [canonical_of(column.type) for column in place.schema.columns]

    def decode(self, cells: Row) -> CollectionRow:
        """The row in cells in the order of ``row_columns``, then the write time: as it was written."""
        key, end = self.key(cells), self._width + len(OWN_COLUMNS)
        t, message_id, gone, partition, offset, topic = self.written(cells[self._width : end], OWN_COLUMNS)
        (write_time,) = self.written(cells[-1:], (GONE,))
        return CollectionRow(
            key=key,
            values=self.values(cells[end:-1]),
            t=integer(t),
            message_id=integer(message_id),
            write_time=integer(write_time),
            gone=is_true(gone),
            topic=topic.decode(),
            partition=integer(partition),
            offset=integer(offset),
            shard=shard_of(key_bytes(key), self._shards),
        )

    def written(self, cells: Row, columns: Sequence[str]) -> list[bytes]:
        """The cells of columns that every row is written with. Raises RowDamaged where one is null."""
        found = [cell for cell in cells if cell is not None]
        if len(found) < len(cells):
            raise RowDamaged(str(self._place), columns[list(cells).index(None)])
        return found

    def version(self, cells: Row) -> Version:
        """The version in cells: the key, t, the message's id and the write time."""
        own = self.written(cells[self._width :], (T, MESSAGE_ID, GONE))
        return Version(self.key(cells), *map(integer, own))

    def key(self, cells: Row) -> Key:
        """The key of a row whose first columns are those of the key."""
        return tuple([cell or b"" for cell in cells[: self._width]])

    def values(self, cells: Sequence[bytes | None]) -> tuple[bytes | None, ...]:
        """Cells of the data columns, in their canonical bytes."""
        return tuple(
            [
                cell if cell is None or canonical is None else canonical(cell)
                for cell, canonical in zip(cells, self._canonical, strict=True)
            ]
        )
