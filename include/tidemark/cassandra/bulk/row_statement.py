"""A statement for the rows of a DataFrame: which columns its bind markers take, and rows as their cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from tidemark.cassandra.bulk.arrow_rows import CannotEncode, Target, encode_rows
from tidemark.cassandra.bulk.row_errors import ColumnMissing, RowRefused
from tidemark.cassandra.cql_types import CqlType, Kind
from tidemark.cassandra.scan.columns import TypeMismatch, takes
from tidemark.cassandra.table import Table


class Using(StrEnum):
    """What a row is written with beside its values."""

    TIMESTAMP = "TIMESTAMP"
    """Its write time, in µs since 1970."""
    TTL = "TTL"
    """How long it lives, in seconds; 0 for ever."""


_TYPES = {Using.TIMESTAMP: CqlType(Kind.BIGINT), Using.TTL: CqlType(Kind.INT)}


@dataclass(frozen=True, slots=True)
class RowStatement:
    """The statement, and what it takes from a batch."""

    table: Table
    targets: tuple[Target, ...]
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


def using_targets(table: Table, schema: pa.Schema, using: Mapping[Using, int | str]) -> list[Target]:
    """The columns that have each row's own write time or life."""
    used = {name: _TYPES[word] for word, name in using.items() if isinstance(name, str)}
    if missing := [name for name in used if name not in schema.names]:
        raise ColumnMissing(str(table), missing[0], tuple(schema.names))
    return [Target(name, cql_type) for name, cql_type in used.items()]


def using_words(using: Mapping[Using, int | str]) -> str:
    """The end of a statement, or its middle; empty where nothing is said."""
    words = [f"{word} {'?' if isinstance(value, str) else value}" for word, value in using.items()]
    return f" USING {' AND '.join(words)}" if words else ""


def check_types(targets: Sequence[Target], schema: pa.Schema) -> None:
    """Refuse fields whose type is not for their column."""
    for target in targets:
        given = schema.field(target.name).type
        if not takes(target.cql_type, given):
            raise TypeMismatch(target.name, target.cql_type, given)
