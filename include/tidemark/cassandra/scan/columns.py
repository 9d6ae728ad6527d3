"""Columns of a table as Arrow fields: which types are compatible, and rows of raw cells as batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from cassandra.metadata import protect_name

from tidemark.cassandra.cql_types import DURATION, CqlKind, CqlType, arrow_type
from tidemark.cassandra.errors import CassandraError
from tidemark.cassandra.scan.arrow_cells import DoesNotFit, decode
from tidemark.cassandra.scan.cell_facts import Computed
from tidemark.cassandra.scan.raw_pages import Row
from tidemark.cassandra.table import Table
from tidemark.errors import with_fields

_INTEGERS = {CqlKind.TINYINT: 8, CqlKind.SMALLINT: 16, CqlKind.INT: 32, CqlKind.BIGINT: 64, CqlKind.TIME: 64}
_NUMBERS = (CqlKind.DECIMAL, CqlKind.VARINT)


@with_fields
class ValueRefused(CassandraError):
    """A value that a DataFrame cannot hold."""

    table: str
    column: str
    problem: str

    text = (
        "{table}: column `{column}` has {problem}, which does not fit into its column of the DataFrame. "
        "Nothing of this read counts. Leave the column out (option `columns`); a decimal may be given "
        "another precision by a schema of your own."
    )


@with_fields
class TypeMismatch(CassandraError, ValueError):
    """A field whose type is not for the column of its name."""

    column: str
    cql_type: CqlType
    given: pa.DataType

    text = "{column} is a {cql_type}, not for {given}"


@dataclass(frozen=True, slots=True)
class Selected:
    """Columns of a table and facts about its cells, and the Arrow fields that they become."""

    table: Table
    schema: pa.Schema
    types: tuple[CqlType, ...]
    facts: tuple[Computed, ...] = ()

    @classmethod
    def of(cls, table: Table, columns: Sequence[str] | None = None, facts: Sequence[Computed] = ()) -> Self:
        """These columns, or all, with their default types; then the facts."""
        names = [column.name for column in table.columns] if columns is None else columns
        types = (*map(table.type_of, names), *(fact.cql_type for fact in facts))
        names = [*names, *(fact.name for fact in facts)]
        schema = pa.schema(list(zip(names, map(arrow_type, types), strict=True)))
        return cls(table, schema, types, tuple(facts))

    @classmethod
    def by_schema(cls, table: Table, schema: pa.Schema, facts: Sequence[Computed] = ()) -> Self:
        """The columns and facts of this schema, which may set decimals' precision and nullability."""
        known = {fact.name: fact.cql_type for fact in facts}
        types = tuple(known.get(name) or table.type_of(name) for name in schema.names)
        for field, cql_type in zip(schema, types, strict=True):
            if not gives(cql_type, field.type):
                raise TypeMismatch(field.name, cql_type, field.type)
        return cls(table, schema, types, tuple(fact for fact in facts if fact.name in schema.names))

    @property
    def columns(self) -> list[str]:
        """The names of columns and facts."""
        return list(self.schema.names)

    @property
    def expressions(self) -> str:
        """The select list of a statement."""
        by_name = {fact.name: fact.expression for fact in self.facts}
        return ", ".join(by_name.get(name) or protect_name(name) for name in self.columns)

    def batch(self, rows: list[Row]) -> pa.RecordBatch:
        """Rows of raw cells as Arrow."""
        columns = zip(*rows, strict=True) if rows else [()] * len(self.types)
        arrays = []
        for field, cql_type, cells in zip(self.schema, self.types, columns, strict=True):
            try:
                array = decode(cql_type, cells, field.type)
            except DoesNotFit as error:
                raise ValueRefused(str(self.table), field.name, str(error)) from None
            if array.null_count and not field.nullable:
                raise ValueRefused(str(self.table), field.name, "null, against what the schema says")
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def gives(cql_type: CqlType, arrow: pa.DataType) -> bool:
    """Whether cells can be read as this type: the default one, or a decimal of another precision."""
    if cql_type.elements:
        parts = _parts(cql_type, arrow, in_order=True)
        return parts is not None and all(map(gives, cql_type.elements, parts))
    if cql_type.kind in _NUMBERS:
        return bool(pa.types.is_decimal128(arrow))
    return _is_duration(arrow) if cql_type.kind is CqlKind.DURATION else bool(arrow == arrow_type(cql_type))


def takes(cql_type: CqlType, arrow: pa.DataType) -> bool:
    """Whether arrays of this type can be written as cells: the default type, or smaller numbers."""
    if pa.types.is_null(arrow):
        return True
    if cql_type.elements:
        parts = _parts(cql_type, arrow, in_order=False)
        return parts is not None and all(map(takes, cql_type.elements, parts))
    match cql_type.kind:
        case kind if kind in _INTEGERS:
            return bool(pa.types.is_signed_integer(arrow) and arrow.bit_width <= _INTEGERS[kind])
        case CqlKind.DOUBLE:
            return bool(pa.types.is_float32(arrow) or pa.types.is_float64(arrow))
        case CqlKind.DECIMAL | CqlKind.VARINT:
            return bool(pa.types.is_decimal(arrow) or pa.types.is_signed_integer(arrow))
        case CqlKind.TIMESTAMP:
            return bool(pa.types.is_timestamp(arrow) and arrow.unit == "us" and arrow.tz)
        case CqlKind.DURATION:
            return _is_duration(arrow)
        case CqlKind.BLOB:
            return bool(pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow))
    usual = arrow_type(cql_type)
    return bool(arrow == usual or (usual == pa.string() and pa.types.is_large_string(arrow)))


def _parts(cql_type: CqlType, arrow: pa.DataType, in_order: bool) -> list[pa.DataType] | None:
    """The types inside, in the order of the elements; None where the structure differs."""
    match cql_type.kind:
        case CqlKind.MAP:
            return [arrow.key_type, arrow.item_type] if pa.types.is_map(arrow) else None
        case CqlKind.TUPLE | CqlKind.USER_TYPE:
            return _fields(cql_type, arrow, in_order)
        case _:
            return [arrow.value_type] if pa.types.is_list(arrow) else None


def _fields(cql_type: CqlType, arrow: pa.DataType, in_order: bool) -> list[pa.DataType] | None:
    if not pa.types.is_struct(arrow) or arrow.num_fields != len(cql_type.fields):
        return None
    by_name = {field.name: field.type for field in arrow}
    if cql_type.kind is CqlKind.TUPLE and not in_order:
        return [field.type for field in arrow]
    if (in_order and tuple(by_name) != cql_type.fields) or set(by_name) != set(cql_type.fields):
        return None
    return [by_name[name] for name in cql_type.fields]


def _is_duration(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_struct(arrow)) and [(f.name, f.type) for f in arrow] == [
        (f.name, f.type) for f in DURATION
    ]
