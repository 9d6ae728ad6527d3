"""The Arrow types of CQL types. Nothing here touches a value.

The types themselves are in ``type_tree``, which imports neither Arrow nor the driver; this module exports
them again.
"""

import pyarrow as pa

from tidemark.cassandra.type_tree import (
    NUMBER_FORMATS,
    CqlKind,
    CqlType,
    NoPlaceInArrow,
    UserType,
    parse_type,
    vector_width,
)

__all__ = [
    "DECIMAL",
    "DURATION",
    "NUMBER_FORMATS",
    "TIMESTAMP",
    "VARINT",
    "CqlKind",
    "CqlType",
    "NoPlaceInArrow",
    "UserType",
    "arrow_type",
    "parse_type",
    "vector_width",
]

DURATION = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])
TIMESTAMP = pa.timestamp("us", tz="UTC")
DECIMAL = pa.decimal128(38, 18)
VARINT = pa.decimal128(38, 0)

_ARROW = {
    CqlKind.ASCII: pa.string(),
    CqlKind.BIGINT: pa.int64(),
    CqlKind.BLOB: pa.binary(),
    CqlKind.BOOLEAN: pa.bool_(),
    CqlKind.COUNTER: pa.int64(),
    CqlKind.DATE: pa.date32(),
    CqlKind.DECIMAL: DECIMAL,
    CqlKind.DOUBLE: pa.float64(),
    CqlKind.DURATION: DURATION,
    CqlKind.FLOAT: pa.float32(),
    CqlKind.INET: pa.string(),
    CqlKind.INT: pa.int32(),
    CqlKind.SMALLINT: pa.int16(),
    CqlKind.TEXT: pa.string(),
    CqlKind.TIME: pa.int64(),
    CqlKind.TIMESTAMP: TIMESTAMP,
    CqlKind.TIMEUUID: pa.string(),
    CqlKind.TINYINT: pa.int8(),
    CqlKind.UUID: pa.string(),
    CqlKind.VARCHAR: pa.string(),
    CqlKind.VARINT: VARINT,
}


def arrow_type(cql_type: CqlType) -> pa.DataType:
    """The Arrow type of a column, which is also Spark's."""
    inner = [arrow_type(element) for element in cql_type.elements]
    if cql_type.kind is CqlKind.MAP:
        return pa.map_(*inner)
    if cql_type.fields:
        return pa.struct(list(zip(cql_type.fields, inner, strict=True)))
    if inner:
        return pa.list_(pa.field("element", inner[0]))
    return _ARROW[cql_type.kind]
