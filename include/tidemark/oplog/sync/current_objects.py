"""The objects as their collection has them at a time, deleted ones too, each with its operation's place.

Judges no time: the caller knows which ones are readable.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import Part, ScanSettings, scan_extract
from tidemark.client.collection.opened import OpenedCollection
from tidemark.collection.tables.layout import GONE, OFFSET, PARTITION
from tidemark.collection.tables.scanning import newest_up_to, rows_of_keys
from tidemark.collection.tables.tables import CollectionTables
from tidemark.operations.operation import object_key
from tidemark.oplog.sync.decisions import CurrentObject
from tidemark.oplog.sync.file_columns import CURRENT
from tidemark.oplog.sync.sending import Place
from tidemark.outputs.state.reader_lease import held_reader

_COLUMNS = ("type", "id", GONE, "timestamp", "parents", PARTITION, OFFSET)
_MILLISECOND = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True)
class CurrentRow:
    """An object, and the place of the operation that left it so."""

    object: CurrentObject
    place: Place


def scan_current(tables: CollectionTables, at: int, parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
    """All objects as of a time, in some parts of the table; the columns are ``CURRENT``."""
    settings = ScanSettings(tables.consistency)
    for batch in scan_extract(tables.session, _selected(tables), parts, newest_up_to(at), settings):
        yield _current(batch)


def read_current(
    opened: OpenedCollection, at: int, objects: Collection[tuple[str, str]], who: str
) -> dict[bytes, CurrentRow]:
    """These objects (type, id) as of a time, by their keys; without those that have no row."""
    with opened.asking(), held_reader(opened.readers, at, who) as lease:
        rows = opened.rows_at(lease, at)
        tables: CollectionTables = rows.tables  # type: ignore[attr-defined]  # the only rows there are
        selected = _selected(tables)
        keys = [(type_.encode(), id_.encode()) for type_, id_ in objects]
        found = list(rows_of_keys(tables, selected, newest_up_to(at), keys))
        lease.check()
    return dict(_rows(_current(selected.batch(found)))) if found else {}


def _selected(tables: CollectionTables) -> Selected:
    return Selected.of(tables.place.rows, _COLUMNS)


def _current(batch: pa.RecordBatch) -> pa.RecordBatch:
    milliseconds = pc.cast(batch.column("timestamp"), _MILLISECOND, safe=False).cast(pa.int64())
    columns = {name: batch.column(name) for name in _COLUMNS}
    gone = pc.fill_null(columns[GONE], False)
    arrays = [columns["type"], columns["id"], gone, milliseconds, columns["parents"]]
    arrays += [columns[PARTITION], columns[OFFSET]]
    return pa.record_batch(
        [array.cast(one.type) for array, one in zip(arrays, CURRENT, strict=True)], CURRENT
    )


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[bytes, CurrentRow]]:
    for type_, id_, deleted, timestamp, parents, *place in zip(
        *(column.to_pylist() for column in batch.columns), strict=True
    ):
        current = CurrentObject(deleted, timestamp, tuple(parents or ()))
        yield object_key(type_, id_), CurrentRow(current, (place[0], place[1]))
