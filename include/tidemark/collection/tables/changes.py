"""What a collection has of one binding time: which rows changed at it, and which rows were written for it.

Neither is stored: the keys that have rows at a time are among the changes, and their rows are read from the
table of rows. Memory holds one page of keys with their rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tidemark.cassandra.scan.columns import Selected
from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow, canonical_bytes
from tidemark.collection.tables.codec.cells import StoredRows, integer, is_true
from tidemark.collection.tables.codec.python_rows import VisibleRow
from tidemark.collection.tables.layout import GONE, T
from tidemark.collection.tables.scanning import (
    keys_changed,
    last_two_times,
    rows_at,
    rows_of_keys,
    whole_rows,
)
from tidemark.collection.tables.tables import CollectionTables
from tidemark.outputs.model.digest import ShardDigest, TimeDigests
from tidemark.outputs.model.updates import RowCounts, RowUpdate, difference


class _Images(NamedTuple):
    """The state of keys before a time and at it; None where a key is gone, no entry where it has no row."""

    before: Mapping[Key, VisibleRow | None]
    at: Mapping[Key, VisibleRow | None]


def changes(tables: CollectionTables, t: int) -> Iterator[RowUpdate]:
    """The rows (``VisibleRow``) that disappeared at a time, and those that appeared at it.

    A key whose row is the same before and at the time changed nothing, whatever messages it had. Ordered by
    shard and key; of each key, the row that disappeared comes first.
    """
    for shard in range(tables.place.schema.shards):
        for keys in keys_changed(tables, shard, t):
            images = _read_images(tables, t, keys)
            for key in keys:
                if key in images.at:  # the row of a discarded message is not there
                    yield from difference(t, _counts(images.before.get(key)), _counts(images.at[key]))


def rows_written(tables: CollectionTables, t: int, shard: int) -> Iterator[CollectionRow]:
    """All rows of a shard at a time, in no order, as they were written: one for every message."""
    stored, selected = StoredRows(tables.place), whole_rows(tables.place)
    for keys in keys_changed(tables, shard, t):
        for cells in rows_of_keys(tables, selected, rows_at(t), keys):
            yield stored.decode(cells)


def digest_of_stored(tables: CollectionTables, t: int) -> TimeDigests:
    """The digests of the rows that are stored for a time, to compare with those that were computed."""
    shards = (
        ShardDigest.of(map(canonical_bytes, rows_written(tables, t, shard)))
        for shard in range(tables.place.schema.shards)
    )
    return TimeDigests(t, tuple(shards))


def _read_images(tables: CollectionTables, t: int, keys: Iterable[Key]) -> _Images:
    place, stored = tables.place, StoredRows(tables.place)
    selected = Selected.of(place.rows, (*place.key_columns, T, GONE, *place.data_columns))
    width = len(place.key_columns)
    images: tuple[dict[Key, VisibleRow | None], ...] = ({}, {})
    for cells in rows_of_keys(tables, selected, last_two_times(place, t), keys):
        key = stored.key(cells)
        row = None if is_true(cells[width + 1]) else VisibleRow(key, stored.values(cells[width + 2 :]))
        # Newest first: where nothing is left of the time itself, both rows are earlier ones.
        (when,) = stored.written(cells[width : width + 1], (T,))
        images[integer(when) == t].setdefault(key, row)
    return _Images(*images)


def _counts(row: VisibleRow | None) -> RowCounts:
    return {} if row is None else {row: 1}
