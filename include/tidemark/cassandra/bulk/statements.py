"""INSERT and DELETE statements for the rows of a DataFrame: their bind markers, and rows as cells.

INSERT takes columns of the table, and columns with each row's write time or time to live. It needs the whole
primary key, without nulls. DELETE takes columns of the key only, so that a DataFrame of whole rows is not
deleted by mistake. It refuses a part of the key unless ranges are asked for, because that deletes rows which
the DataFrame does not name. Both refuse tables of counters: adding to a counter is not idempotent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import pyarrow as pa

from tidemark.cassandra import cells
from tidemark.cassandra.bulk.arrow_rows import FIXED_WIDTH, BoundColumn, CannotEncode, encode_rows
from tidemark.cassandra.bulk.row_errors import (
    ColumnMissing,
    CountersRefused,
    KeyMissing,
    KeyNotWhole,
    LifeOfNothing,
    NotOfTheKey,
    RowRefused,
)
from tidemark.cassandra.cql_types import CqlKind, CqlType
from tidemark.cassandra.scan.columns import TypeMismatch, takes
from tidemark.cassandra.table import Table, quoted


class Using(StrEnum):
    """A parameter of a row's write beside its values."""

    TIMESTAMP = "TIMESTAMP"
    """Its write time, in µs since 1970."""
    TTL = "TTL"
    """How long it lives, in seconds; 0 for ever."""


_TYPES = {Using.TIMESTAMP: CqlType(CqlKind.BIGINT), Using.TTL: CqlType(CqlKind.INT)}


@dataclass(frozen=True, slots=True)
class RowStatement:
    """The statement, and what it takes from a batch."""

    table: Table
    targets: tuple[BoundColumn, ...]
    """In the order of the statement's bind markers."""
    query: str

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


@dataclass(frozen=True, slots=True)
class InsertOptions:
    """How the columns of a DataFrame are written."""

    using: Mapping[Using, int | str] = field(default_factory=dict)
    """A number for all rows, or the name of the column that has each row's own."""
    ignore_nulls: bool = True
    """Whether null leaves a column of the table as it is, instead of removing what it has."""


@dataclass(frozen=True, slots=True)
class InsertStatement(RowStatement):
    """An INSERT, and what it takes from a batch."""

    @classmethod
    def of(cls, table: Table, schema: pa.Schema, options: InsertOptions) -> Self:
        """The statement for batches of this schema. Refuses what the table cannot take."""
        if table.has_counters:
            raise CountersRefused(str(table))
        used = _using_columns(table, schema, options.using)
        absent, key = cells.UNSET if options.ignore_nulls else cells.NULL, table.primary_key
        targets = [
            BoundColumn(name, table.type_of(name), None if name in key else absent)
            for name in schema.names
            if name not in [target.name for target in used]
        ]
        if missing := [name for name in key if name not in schema.names]:
            raise KeyMissing(str(table), tuple(missing), key)
        targets.sort(key=lambda target: target.cql_type.kind not in FIXED_WIDTH)
        names = [target.name for target in targets]
        markers = ", ".join("?" * len(names))
        query = f"INSERT INTO {table.cql_name} ({quoted(names)}) VALUES ({markers})"
        targets += used
        _check_types(targets, schema)
        return cls(table, tuple(targets), query + _using_clause(options.using))


@dataclass(frozen=True, slots=True)
class DeleteStatement(RowStatement):
    """A DELETE, and what it takes from a batch."""

    @classmethod
    def of(cls, table: Table, schema: pa.Schema, using: Mapping[Using, int | str], ranges: bool) -> Self:
        """The statement for batches of this schema; with ``ranges``, a prefix of the key may be given."""
        if table.has_counters:
            raise CountersRefused(str(table))
        if Using.TTL in using:
            raise LifeOfNothing(str(table))
        used = _using_columns(table, schema, using)
        names = [name for name in schema.names if name not in [target.name for target in used]]
        key = table.primary_key
        if others := [name for name in names if name not in key]:
            raise NotOfTheKey(str(table), tuple(others), key)
        whole = key if not ranges else _beginning(table, names)
        if missing := [name for name in whole if name not in names]:
            raise KeyNotWhole(str(table), tuple(missing), key)
        targets = [*used, *(BoundColumn(name, table.type_of(name), None) for name in whole)]
        _check_types(targets, schema)
        where = " AND ".join(f"{quoted([name])} = ?" for name in whole)
        query = f"DELETE FROM {table.cql_name}{_using_clause(using)} WHERE {where}"
        return cls(table, tuple(targets), query)


def _beginning(table: Table, names: list[str]) -> tuple[str, ...]:
    """The columns of the key up to the last that is named: at least the partition key, without a gap."""
    key = table.primary_key
    last = max((key.index(name) for name in names), default=-1)
    return key[: max(last + 1, len(table.partition_key))]


def _using_columns(table: Table, schema: pa.Schema, using: Mapping[Using, int | str]) -> list[BoundColumn]:
    """The columns of the DataFrame that hold each row's write time or time to live."""
    used = {name: _TYPES[word] for word, name in using.items() if isinstance(name, str)}
    if missing := [name for name in used if name not in schema.names]:
        raise ColumnMissing(str(table), missing[0], tuple(schema.names))
    return [BoundColumn(name, cql_type) for name, cql_type in used.items()]


def _using_clause(using: Mapping[Using, int | str]) -> str:
    """The USING clause; empty where nothing is set."""
    words = [f"{word} {'?' if isinstance(value, str) else value}" for word, value in using.items()]
    return f" USING {' AND '.join(words)}" if words else ""


def _check_types(targets: Sequence[BoundColumn], schema: pa.Schema) -> None:
    """Refuse fields whose type their column cannot take."""
    for target in targets:
        given = schema.field(target.name).type
        if not takes(target.cql_type, given):
            raise TypeMismatch(target.name, target.cql_type, given)
