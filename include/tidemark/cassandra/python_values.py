"""Values of CQL as Python values, by the driver's own types: what a query through the driver returns.

Decimals and UUIDs are exact, a ``timestamp`` is a naive ``datetime`` in UTC; ``date``, ``time`` and
``duration`` are types of ``cassandra.util``. Whole columns are decoded to Arrow, by ``scan/arrow_cells``.
"""

from typing import Any

from cassandra import cqltypes

from tidemark.cassandra.cql_types import CqlKind, CqlType

_PROTOCOL = 5
_TYPES = {
    CqlKind.ASCII: cqltypes.AsciiType,
    CqlKind.BIGINT: cqltypes.LongType,
    CqlKind.BLOB: cqltypes.BytesType,
    CqlKind.BOOLEAN: cqltypes.BooleanType,
    CqlKind.COUNTER: cqltypes.CounterColumnType,
    CqlKind.DATE: cqltypes.SimpleDateType,
    CqlKind.DECIMAL: cqltypes.DecimalType,
    CqlKind.DOUBLE: cqltypes.DoubleType,
    CqlKind.DURATION: cqltypes.DurationType,
    CqlKind.FLOAT: cqltypes.FloatType,
    CqlKind.INET: cqltypes.InetAddressType,
    CqlKind.INT: cqltypes.Int32Type,
    CqlKind.LIST: cqltypes.ListType,
    CqlKind.MAP: cqltypes.MapType,
    CqlKind.SET: cqltypes.SetType,
    CqlKind.SMALLINT: cqltypes.ShortType,
    CqlKind.TEXT: cqltypes.UTF8Type,
    CqlKind.TIME: cqltypes.TimeType,
    CqlKind.TIMESTAMP: cqltypes.DateType,
    CqlKind.TIMEUUID: cqltypes.TimeUUIDType,
    CqlKind.TINYINT: cqltypes.ByteType,
    CqlKind.TUPLE: cqltypes.TupleType,
    CqlKind.UUID: cqltypes.UUIDType,
    CqlKind.VARCHAR: cqltypes.UTF8Type,
    CqlKind.VARINT: cqltypes.IntegerType,
}


class PythonType:
    """Encodes and decodes the values of one type. User-defined types are refused: they need a keyspace."""

    def __init__(self, cql_type: CqlType) -> None:
        self._driver = _driver_type(cql_type)

    def decode(self, data: bytes | None) -> Any:
        """The value in a cell, which is without its length prefix here; None for null."""
        return self._driver.from_binary(data, _PROTOCOL)

    def encode(self, value: Any) -> bytes:
        """The bytes of a value. Raises what the driver raises for a value of another type."""
        data: bytes = self._driver.to_binary(value, _PROTOCOL)
        return data


def _driver_type(cql_type: CqlType) -> Any:
    if cql_type.kind is CqlKind.USER_TYPE:
        raise ValueError(f"{cql_type} is a user-defined type")
    elements = [_driver_type(element) for element in cql_type.elements]
    if cql_type.kind is CqlKind.VECTOR:
        return cqltypes.VectorType.apply_parameters([*elements, cql_type.size], None)
    found = _TYPES[cql_type.kind]
    return found.apply_parameters(elements) if elements else found
