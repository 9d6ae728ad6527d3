"""The types of CQL that have a place in Arrow, as a tree. Nothing here touches a value.

A collection that is ``frozen`` has the same cells as one that is not, so the word is dropped. What has no
place (counters, tuples, user-defined types, vectors, anything unknown) is refused by ``parse_type``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import pyarrow as pa


class Kind(StrEnum):
    """A type's outermost word, as ``system_schema`` has it."""

    ASCII = "ascii"
    BIGINT = "bigint"
    BLOB = "blob"
    BOOLEAN = "boolean"
    DATE = "date"
    DECIMAL = "decimal"
    DOUBLE = "double"
    DURATION = "duration"
    FLOAT = "float"
    INET = "inet"
    INT = "int"
    LIST = "list"
    MAP = "map"
    SET = "set"
    SMALLINT = "smallint"
    TEXT = "text"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMEUUID = "timeuuid"
    TINYINT = "tinyint"
    UUID = "uuid"
    VARCHAR = "varchar"
    VARINT = "varint"


@dataclass(frozen=True, slots=True)
class CqlType:
    """A type, with those of its elements."""

    kind: Kind
    elements: tuple["CqlType", ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}<{', '.join(map(str, self.elements))}>" if self.elements else str(self.kind)


class NoPlaceInArrow(ValueError):
    """A type whose values cannot be columns of a DataFrame here."""

    def __init__(self, type_name: str) -> None:
        super().__init__(f"no column can hold {type_name}")
        self.type_name = type_name


DURATION = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])
TIMESTAMP = pa.timestamp("us", tz="UTC")
DECIMAL = pa.decimal128(38, 18)
VARINT = pa.decimal128(38, 0)

_ARROW = {
    Kind.ASCII: pa.string(),
    Kind.BIGINT: pa.int64(),
    Kind.BLOB: pa.binary(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.DECIMAL: DECIMAL,
    Kind.DOUBLE: pa.float64(),
    Kind.DURATION: DURATION,
    Kind.FLOAT: pa.float32(),
    Kind.INET: pa.string(),
    Kind.INT: pa.int32(),
    Kind.SMALLINT: pa.int16(),
    Kind.TEXT: pa.string(),
    Kind.TIME: pa.int64(),
    Kind.TIMESTAMP: TIMESTAMP,
    Kind.TIMEUUID: pa.string(),
    Kind.TINYINT: pa.int8(),
    Kind.UUID: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.VARINT: VARINT,
}
_ELEMENTS = {Kind.LIST: 1, Kind.SET: 1, Kind.MAP: 2}


@cache
def parse_type(text: str) -> CqlType:
    """A type as ``system_schema.columns`` spells it."""
    name, _, inside = text.strip().partition("<")
    inner = _split(inside.removesuffix(">")) if inside else []
    if name == "frozen" and len(inner) == 1:
        return parse_type(inner[0])
    try:
        kind = Kind(name)
        elements = tuple(map(parse_type, inner))
    except ValueError:
        raise NoPlaceInArrow(text) from None
    if len(elements) != _ELEMENTS.get(kind, 0):
        raise NoPlaceInArrow(text)
    return CqlType(kind, elements)


def arrow_type(cql_type: CqlType) -> pa.DataType:
    """The Arrow type of a column; the one that Spark has for the same."""
    inner = [arrow_type(element) for element in cql_type.elements]
    if cql_type.kind is Kind.MAP:
        return pa.map_(*inner)
    if inner:
        return pa.list_(pa.field("element", inner[0]))
    return _ARROW[cql_type.kind]


def _split(text: str) -> Sequence[str]:
    """What stands between commas that are in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
