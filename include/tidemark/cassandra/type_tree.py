"""CQL types as text, parsed into a tree. Nothing here touches a value, and nothing heavy is imported:
pipeline files declare types of columns.

``frozen`` does not change the cells of a type, so it is dropped. ``parse_type`` refuses types without an
Arrow representation: custom Java types and unknown ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NamedTuple


class CqlKind(StrEnum):
    """A type's outermost name, as ``system_schema`` spells it."""

    ASCII = "ascii"
    BIGINT = "bigint"
    BLOB = "blob"
    BOOLEAN = "boolean"
    COUNTER = "counter"
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
    TUPLE = "tuple"
    USER_TYPE = "user-defined type"
    """Not a CQL name: such a type is called by its own name."""
    UUID = "uuid"
    VARCHAR = "varchar"
    VARINT = "varint"
    VECTOR = "vector"


class UserType(NamedTuple):
    """A user-defined type of a keyspace, from ``system_schema.types``."""

    name: str
    fields: tuple[tuple[str, str], ...]
    """Names and types, spelled as by the server."""


@dataclass(frozen=True, slots=True)
class CqlType:
    """A type with the types of its elements."""

    kind: CqlKind
    elements: tuple["CqlType", ...] = ()
    fields: tuple[str, ...] = ()
    """The names of a user-defined type's fields, and of a tuple's places: ``_1`` and so on."""
    size: int = 0
    """How many elements a vector has."""
    name: str = ""
    """Of a user-defined type."""

    def __str__(self) -> str:
        if self.kind is CqlKind.USER_TYPE:
            return self.name
        inside = [*map(str, self.elements), *([str(self.size)] if self.kind is CqlKind.VECTOR else [])]
        return f"{self.kind}<{', '.join(inside)}>" if inside else str(self.kind)


class NoPlaceInArrow(ValueError):
    """A type that has no Arrow representation."""

    def __init__(self, type_name: str) -> None:
        super().__init__(f"no column can hold {type_name}")
        self.type_name = type_name


_WIDTHS = {
    CqlKind.BIGINT: 8,
    CqlKind.BOOLEAN: 1,
    CqlKind.DOUBLE: 8,
    CqlKind.FLOAT: 4,
    CqlKind.INT: 4,
    CqlKind.TIMESTAMP: 8,
    CqlKind.TIMEUUID: 16,
    CqlKind.UUID: 16,
}
"""Types whose elements have no length prefix inside vectors. Other fixed-width types (``smallint``, ``date``)
have one: Cassandra does not treat them as fixed there.
"""
NUMBER_FORMATS = {
    CqlKind.BIGINT: ">i8",
    CqlKind.DOUBLE: ">f8",
    CqlKind.FLOAT: ">f4",
    CqlKind.INT: ">i4",
    CqlKind.SMALLINT: ">i2",
    CqlKind.TIME: ">i8",
    CqlKind.TINYINT: ">i1",
}
"""Kinds whose cells are plain numbers, with the cells' numpy type."""
_ELEMENTS = {CqlKind.LIST: 1, CqlKind.SET: 1, CqlKind.MAP: 2}


@cache
def parse_type(text: str, user_types: tuple[UserType, ...] = ()) -> CqlType:
    """Parse a type of ``system_schema.columns``, in a keyspace with these user-defined types."""
    text = text.strip()
    for known in user_types:
        from cassandra.metadata import protect_name  # pipeline files are read without the driver

        if text == protect_name(known.name):
            inner = tuple(parse_type(each, user_types) for _, each in known.fields)
            names = tuple(name for name, _ in known.fields)
            return CqlType(CqlKind.USER_TYPE, inner, fields=names, name=known.name)
    name, _, inside = text.partition("<")
    parts = _split(inside.removesuffix(">")) if inside else []
    if name == "frozen" and len(parts) == 1:
        return parse_type(parts[0], user_types)
    try:
        kind = CqlKind(name)
        if kind is CqlKind.VECTOR:
            element, size = parts
            return CqlType(kind, (parse_type(element, user_types),), size=int(size))
        elements = tuple(parse_type(each, user_types) for each in parts)
    except ValueError:
        raise NoPlaceInArrow(text) from None
    if kind is CqlKind.TUPLE and elements:
        return CqlType(kind, elements, fields=tuple(f"_{place + 1}" for place in range(len(elements))))
    if kind in (CqlKind.TUPLE, CqlKind.USER_TYPE) or len(elements) != _ELEMENTS.get(kind, 0):
        raise NoPlaceInArrow(text)
    return CqlType(kind, elements)


def vector_width(element: CqlType) -> int | None:
    """Bytes of each element of a vector; None where elements are length-prefixed."""
    if element.kind is CqlKind.VECTOR:
        inner = vector_width(element.elements[0])
        return None if inner is None else inner * element.size
    return _WIDTHS.get(element.kind)


def _split(text: str) -> Sequence[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, is_quoted = [""], 0, False
    for character in text:
        is_quoted ^= character == '"'
        if not is_quoted:
            depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0 and not is_quoted:
            parts.append("")
        else:
            parts[-1] += character
    return parts
