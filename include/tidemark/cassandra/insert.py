"""An INSERT for the columns of a DataFrame: which go where, what is refused, and the statement itself.

Every column must be one of the table's, or the one that has each row's write time or time to live. The whole
primary key must be there, and no part of it may be null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import pyarrow as pa

from tidemark.cassandra import cells
from tidemark.cassandra.arrow_rows import FIXED_WIDTH, CannotEncode, Target, encode_rows
from tidemark.cassandra.columns import TypeMismatch, takes
from tidemark.cassandra.cql_types import CqlType, Kind
from tidemark.cassandra.insert_errors import ColumnMissing, KeyMissing, RowRefused
from tidemark.cassandra.table import Table, quoted


class Using(StrEnum):
    """What a row is written with beside its values."""

    TIMESTAMP = "TIMESTAMP"
    """Its write time, in µs since 1970."""
    TTL = "TTL"
    """How long it lives, in seconds; 0 for ever."""


_TYPES = {Using.TIMESTAMP: CqlType(Kind.BIGINT), Using.TTL: CqlType(Kind.INT)}


@dataclass(frozen=True, slots=True)
class Columns:
    """How the columns of a DataFrame are meant."""

    using: Mapping[Using, int | str] = field(default_factory=dict)
    """A number for all rows, or the name of the column that has each row's own."""
    ignore_nulls: bool = True
    """Whether null leaves a column of the table as it is, instead of removing what it has."""


@dataclass(frozen=True, slots=True)
class Insert:
    """The statement, and what it takes from a batch."""

    table: Table
    targets: tuple[Target, ...]
    """In the order of the statement's bind markers."""
    query: str

    @classmethod
    def of(cls, table: Table, schema: pa.Schema, columns: Columns) -> Self:
        """For batches of this schema."""
        used = {name: _TYPES[using] for using, name in columns.using.items() if isinstance(name, str)}
        if missing := [name for name in used if name not in schema.names]:
            raise ColumnMissing(str(table), missing[0], tuple(schema.names))
        absent, key = cells.UNSET if columns.ignore_nulls else cells.NULL, table.primary_key
        targets = [
            Target(name, table.type_of(name), None if name in key else absent)
            for name in schema.names
            if name not in used
        ]
        if missing := [name for name in key if name not in schema.names]:
            raise KeyMissing(str(table), tuple(missing), key)
        targets.sort(key=lambda target: target.cql_type.kind not in FIXED_WIDTH)
        query = _query(table, [target.name for target in targets], columns.using)
        targets += [Target(name, cql_type) for name, cql_type in used.items()]
        for target in targets:
            given = schema.field(target.name).type
            if not takes(target.cql_type, given):
                raise TypeMismatch(target.name, target.cql_type, given)
        return cls(table, tuple(targets), query)

    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        """The cells of each row of a batch."""
        arrays = [batch.column(target.name) for target in self.targets]
        try:
            return encode_rows(self.targets, arrays)
        except CannotEncode as error:
            raise self._refused(arrays, error) from None

    def _refused(self, arrays: Sequence[pa.Array], error: CannotEncode) -> RowRefused:
        for target, array in zip(self.targets, arrays, strict=True):
            try:
                encode_rows([target], [array])
            except CannotEncode as one:
                return RowRefused(str(self.table), target.name, str(target.cql_type), str(one))
        return RowRefused(str(self.table), "?", "?", str(error))


def _query(table: Table, names: Sequence[str], using: Mapping[Using, int | str]) -> str:
    markers = ", ".join("?" * len(names))
    query = f"INSERT INTO {table.cql_name} ({quoted(names)}) VALUES ({markers})"
    words = [f"{word} {'?' if isinstance(value, str) else value}" for word, value in using.items()]
    return f"{query} USING {' AND '.join(words)}" if words else query
