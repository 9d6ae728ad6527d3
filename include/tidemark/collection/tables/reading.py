"""Reads a collection as of a time: one key, or all of them. Judges nothing: the caller knows which times are
readable.

The state of a key is its newest row up to that time; a row that says that the key is gone is no state.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.cassandra.driver import (
    EXEC_PROFILE_DEFAULT,
    InvalidRequest,
    PreparedStatement,
    tuple_factory,
)
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.raw_pages import Encoded, bind_values
from tidemark.cassandra.scan.table_scan import Part, ScanSettings, scan_extract
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.tables.codec.cells import StoredRows
from tidemark.collection.tables.codec.python_rows import PythonRow, PythonRows, VisibleRow
from tidemark.collection.tables.identity import identify
from tidemark.collection.tables.layout import GONE
from tidemark.collection.tables.scanning import newest_up_to, scan_rows, whole_ring, whole_rows
from tidemark.collection.tables.statements import select_row
from tidemark.collection.tables.tables import CollectionTables


class CollectionReader:
    """Reads the tables of a collection over a session. Raises CollectionMissing where they are not there."""

    def __init__(self, tables: CollectionTables) -> None:
        self._tables, self._place = tables, tables.place
        self._python = PythonRows(self._place)
        self._select = self._prepare()
        self._select.consistency_level = tables.consistency
        self._select.is_idempotent = True
        self._profile = tables.session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, row_factory=tuple_factory
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns of ``rows`` with their usual types: the key's, then the others."""
        columns = (*self._place.key_columns, *self._place.data_columns)
        return Selected.of(self._place.rows, columns).schema

    def refuse_other_types(self, schema: pa.Schema) -> None:
        """Raise UnknownColumn or TypeMismatch for a schema that ``rows`` could not give."""
        self._selected(schema)

    def decode(self, row: VisibleRow) -> PythonRow:
        """A row by column name, the key first."""
        return self._python.decode(row)

    def get(self, key: Mapping[str, Any], at: int) -> PythonRow | None:
        """The row of a key as of a time; None where there is none. Raises KeyRefused."""
        cells = self._python.encode_key(key)
        query = bind_values(self._select, (*map(Encoded, cells), at))
        row = self._tables.session.execute(query, execution_profile=self._profile).one()
        if row is None or row[0]:
            return None
        return self._python.decode_key(cells) | dict(zip(self._place.data_columns, row[1:], strict=True))

    def rows(
        self, at: int, schema: pa.Schema | None = None, parts: Iterable[Part] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of all keys as of a time, in no order.

        Args:
            at: The time.
            schema: The columns to read, and decimals' precision; all columns with their usual types by
                default.
            parts: Ranges of the ring, for a process that reads a part of the table; the whole ring by
                default.

        Raises:
            ValueRefused: For a value that its type in Arrow cannot hold, such as a decimal of 40 digits.
        """
        selected = self._selected(schema)
        settings = ScanSettings(self._tables.consistency)
        ranges = whole_ring(self._tables.session) if parts is None else parts
        extract = newest_up_to(at)
        for batch in scan_extract(self._tables.session, selected, ranges, extract, settings):
            gone = pc.fill_null(batch.column(GONE), False)
            there = batch.filter(pc.invert(gone)) if gone.true_count else batch
            if there.num_rows:
                yield there.drop_columns([GONE])

    def stored(
        self, at: int, parts: Iterable[Part] | None = None, *, with_gone: bool = False
    ) -> Iterator[CollectionRow]:
        """The rows of all keys as of a time, as they were written: for digests and comparisons. Rows that say
        that a key is gone only ``with_gone``."""
        stored = StoredRows(self._place)
        ranges = whole_ring(self._tables.session) if parts is None else parts
        for rows in scan_rows(self._tables, whole_rows(self._place), newest_up_to(at), ranges):
            for cells in rows:
                row = stored.decode(cells)
                if with_gone or not row.gone:
                    yield row

    def _prepare(self) -> PreparedStatement:
        try:
            return self._tables.session.prepare(select_row(self._place))
        except InvalidRequest:
            identify(self._tables.session, self._place)  # raises CollectionMissing where it is not there
            raise

    def _selected(self, schema: pa.Schema | None) -> Selected:
        table = self._place.rows
        if schema is None:
            return Selected.of(table, (*self._place.key_columns, *self._place.data_columns, GONE))
        return Selected.by_schema(table, schema.append(pa.field(GONE, pa.bool_())))
