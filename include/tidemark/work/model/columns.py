"""The declared columns of a journal's keys and payloads.

A value must have exactly the declared columns, each of its type; nothing is converted, filled in or dropped.
A key of one text column is stored as that text, any other key as the JSON list of its values in the order of
the declaration.
"""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from tidemark.errors import did_you_mean

LARGEST_INT = 2**63 - 1


class ColumnType(StrEnum):
    """The type of a column."""

    TEXT = "text"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    JSON = "json"


Columns = Mapping[str, ColumnType]


def problems(columns: Columns, values: Any) -> Iterator[str]:
    """The problems of a value, each a clause that begins with the column's name."""
    if not isinstance(values, Mapping):
        yield f"it is {type(values).__name__}, not a mapping of {', '.join(columns)}"
        return
    for name, kind in columns.items():
        if name not in values:
            yield f"`{name}` is missing"
        elif not _fits(kind, values[name]):
            yield f"`{name}` is not {kind.value}"
    for name in values:
        if name not in columns:
            hint = did_you_mean(str(name), columns, f"Declared: {', '.join(columns)}.")
            yield f"`{name}` is not declared. {hint}"


def key_text(columns: Columns, values: Mapping[str, Any]) -> str:
    """The stored form of a key."""
    parts = [values[name] for name in columns]
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else json_text(parts)


def key_values(columns: Columns, text: str) -> dict[str, Any]:
    """The columns of a stored key."""
    if list(columns.values()) == [ColumnType.TEXT]:
        return {next(iter(columns)): text}
    return dict(zip(columns, json.loads(text), strict=True))


def json_text(value: Any) -> str:
    """Canonical JSON: equal values have equal texts."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def _fits(kind: ColumnType, value: Any) -> bool:
    match kind:
        case ColumnType.TEXT:
            return isinstance(value, str) and _is_storable(value)
        case ColumnType.INT:
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INT
        case ColumnType.FLOAT:
            return isinstance(value, int | float) and not isinstance(value, bool) and _is_json(value)
        case ColumnType.BOOL:
            return isinstance(value, bool)
        case ColumnType.JSON:
            return _is_json(value)


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_json(value: Any) -> bool:
    try:
        return _is_storable(json_text(value))
    except (TypeError, ValueError, RecursionError):
        return False
