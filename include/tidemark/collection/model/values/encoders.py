"""For each CQL type the functions that make its bytes; compiled once for a column, called for every row."""

from collections.abc import Mapping
from typing import NamedTuple

from tidemark.cassandra.type_tree import CqlKind, CqlType, vector_width
from tidemark.collection.model.schema import Column
from tidemark.collection.model.values import durations, identifiers, nested, numbers, texts, times
from tidemark.collection.model.values.misfit import Encode, Misfit


class Scalar(NamedTuple):
    """The functions of a type without elements.

    Attributes:
        from_json: From a JSON value.
        from_text: From text alone: a raw message key, or the name of a member of a JSON object.
    """

    from_json: Encode
    from_text: Encode


def encoder_of(cql_type: CqlType) -> Encode:
    """The function from JSON values of a type to their bytes. It raises ``Misfit``; null is not a value."""
    kind, inside = cql_type.kind, [encoder_of(element) for element in cql_type.elements]
    match kind:
        case CqlKind.LIST:
            return nested.list_of(inside[0])
        case CqlKind.SET:
            return nested.set_of(inside[0])
        case CqlKind.MAP:
            keys = _SCALARS.get(cql_type.elements[0].kind)
            return nested.map_of(nested.KeyEncoders(inside[0], keys.from_text if keys else None), inside[1])
        case CqlKind.TUPLE:
            return nested.tuple_of(inside)
        case CqlKind.VECTOR:
            return nested.vector_of(inside[0], cql_type.size, vector_width(cql_type.elements[0]))
    return _SCALARS[kind].from_json


def text_encoder_of(cql_type: CqlType) -> Encode:
    """The function from texts to the bytes of a type without elements."""
    return _SCALARS[cql_type.kind].from_text


def column_encoder(column: Column) -> Encode:
    """As ``encoder_of``; the text of what it raises begins with the column and its type."""
    encode = encoder_of(column.type)

    def encode_column(value: object) -> bytes:
        try:
            return encode(value)
        except Misfit as misfit:
            raise in_column(column, misfit) from None

    return encode_column


def in_column(column: Column, misfit: Misfit) -> ValueError:
    """The error with the column and its type before the reason."""
    return ValueError(f"column `{column.name}` ({column.type}): {misfit}")


def _same(encode: Encode) -> Scalar:
    """A type whose JSON value is text anyway."""
    return Scalar(encode, encode)


def _integers(layout: str, bits: int, *, also_text: bool = False) -> Scalar:
    from_json = numbers.integers(layout, bits, from_text=also_text)
    return Scalar(from_json, numbers.integers(layout, bits, from_text=True))


def _numbers(encode: Encode) -> Scalar:
    return Scalar(encode, lambda text: encode(numbers.number_in(text)))


_SCALARS: Mapping[CqlKind, Scalar] = {
    CqlKind.ASCII: _same(texts.ascii_text),
    CqlKind.BIGINT: _integers(">q", 64, also_text=True),
    CqlKind.BLOB: _same(texts.blob),
    CqlKind.BOOLEAN: Scalar(numbers.boolean, numbers.boolean_in),
    CqlKind.DATE: _same(times.date),
    CqlKind.DECIMAL: _same(numbers.decimal),
    CqlKind.DOUBLE: _numbers(numbers.double),
    CqlKind.DURATION: _same(durations.duration),
    CqlKind.FLOAT: _numbers(numbers.single),
    CqlKind.INET: _same(identifiers.inet),
    CqlKind.INT: _integers(">i", 32),
    CqlKind.SMALLINT: _integers(">h", 16),
    CqlKind.TEXT: _same(texts.text),
    CqlKind.TIME: _same(times.time),
    CqlKind.TIMESTAMP: Scalar(times.timestamp, times.timestamp_in),
    CqlKind.TIMEUUID: _same(identifiers.timeuuid),
    CqlKind.TINYINT: _integers(">b", 8),
    CqlKind.UUID: _same(identifiers.uuid),
    CqlKind.VARCHAR: _same(texts.text),
    CqlKind.VARINT: _same(numbers.varint),
}
