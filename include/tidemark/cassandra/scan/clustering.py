"""Conditions on clustering columns → CQL restrictions. Pure.

CQL allows ``=`` or ``IN`` on the first clustering columns, then a range on the next one. A condition is used
only where Cassandra compares as Arrow does: floating point has two zeros, and UUIDs and addresses do not sort
as their texts do, so those have no ranges. Conditions that are not used are left to the caller.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from math import ceil, floor
from typing import Any

from cassandra.metadata import protect_name

from tidemark.cassandra.cql_types import CqlKind, CqlType
from tidemark.cassandra.scan.partition_keys import key_values, whole_milliseconds
from tidemark.cassandra.table import Table

MOST_VALUES = 100
"""Combinations of ``IN`` values in one statement; conditions with more are left to the caller."""

_HAS_EMPTY = frozenset({CqlKind.ASCII, CqlKind.BLOB, CqlKind.TEXT, CqlKind.VARCHAR})
"""Types whose empty cell is a value. For others it is null, which Cassandra sorts first."""
_AS_THEY_ARE = frozenset(
    {
        *_HAS_EMPTY,
        CqlKind.BIGINT,
        CqlKind.BOOLEAN,
        CqlKind.DATE,
        CqlKind.DECIMAL,
        CqlKind.INT,
        CqlKind.SMALLINT,
        CqlKind.TIME,
        CqlKind.TINYINT,
    }
)


class CqlOperator(StrEnum):
    """A comparison operator of CQL."""

    IN = "IN"
    EQUAL = "="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="


_POINTS = (CqlOperator.EQUAL, CqlOperator.IN)
_LOWER = (CqlOperator.GREATER, CqlOperator.GREATER_OR_EQUAL)
_UPPER = (CqlOperator.LESS, CqlOperator.LESS_OR_EQUAL)


@dataclass(frozen=True, slots=True)
class ColumnCondition:
    """A condition on rows: the column is not null and compares like this with one of the values."""

    column: str
    comparison: CqlOperator
    values: tuple[Any, ...]
    """One, or several for ``IN``."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """A condition in a statement, with the value in the driver's type."""

    column: str
    comparison: CqlOperator
    value: Any

    def __str__(self) -> str:
        return f"{protect_name(self.column)} {self.comparison} ?"


@dataclass(slots=True)
class Restricted:
    """The restrictions of a statement, and what they leave to do."""

    restrictions: list[Restriction] = field(default_factory=list)
    settled: list[ColumnCondition] = field(default_factory=list)
    """Conditions that every returned row meets."""
    is_empty: bool = False
    """Whether no row can meet the conditions."""
    without_nulls: list[str] = field(default_factory=list)
    """Columns that may be null in returned rows despite a settled condition: the caller drops such rows."""


def restrict(table: Table, conditions: Sequence[ColumnCondition]) -> Restricted:
    """The restrictions of a table's clustering columns, from conditions that must all be met."""
    found, combinations = Restricted(), 1
    for column in table.clustering:
        here = [each for each in conditions if each.column == column]
        cql_type = table.type_of(column)
        points = [(each, _points(cql_type, each)) for each in here if each.comparison in _POINTS]
        taken = [(each, values) for each, values in points if values is not None]
        if not taken:
            _restrict_range(found, cql_type, here)
            break
        values = [value for value in taken[0][1] if all(value in others for _, others in taken[1:])]
        combinations *= len(values)
        if combinations > MOST_VALUES:
            break
        found.is_empty |= not values
        found.settled += [each for each, _ in taken]
        if len(values) == 1:
            found.restrictions.append(Restriction(column, CqlOperator.EQUAL, values[0]))
        else:
            found.restrictions.append(Restriction(column, CqlOperator.IN, values))
    return found


def _points(cql_type: CqlType, condition: ColumnCondition) -> list[Any] | None:
    """The values that a cell may have; None where equality cannot be used."""
    given = [value for value in condition.values if value is not None]
    if cql_type.kind is CqlKind.DECIMAL:
        return list(dict.fromkeys(given))
    if cql_type.kind is CqlKind.VARINT:
        return list(dict.fromkeys(int(value) for value in given if value == int(value)))
    return key_values(cql_type, given)


def _restrict_range(found: Restricted, cql_type: CqlType, conditions: Sequence[ColumnCondition]) -> None:
    bounds = []
    for side in (_LOWER, _UPPER):
        condition = next((each for each in conditions if each.comparison in side), None)
        if condition is not None and (bound := _bound(cql_type, condition)) is not None:
            bounds.append(bound)
            found.settled.append(condition)
    found.restrictions += bounds
    if bounds and bounds[0].comparison in _UPPER and cql_type.kind not in _HAS_EMPTY:
        found.without_nulls.append(bounds[0].column)


def _bound(cql_type: CqlType, condition: ColumnCondition) -> Restriction | None:
    """One bound of a range; None where Cassandra sorts the type differently."""
    (value,) = condition.values
    if value is None:
        return None
    if cql_type.kind in _AS_THEY_ARE:
        value = bytes(value) if cql_type.kind is CqlKind.BLOB else value
        if cql_type.kind is CqlKind.ASCII and not value.isascii():
            return None
        return Restriction(condition.column, condition.comparison, value)
    whole = _WHOLE.get(cql_type.kind)
    if whole is None:
        return None
    # Cells are whole numbers: `>` and `<=` round the value down, the others round it up.
    towards = floor if condition.comparison in (CqlOperator.GREATER, CqlOperator.LESS_OR_EQUAL) else ceil
    return Restriction(condition.column, condition.comparison, whole(value, towards))


def _milliseconds(value: datetime, towards: Callable[[Any], int]) -> int:
    whole, has_rest = whole_milliseconds(value)
    return whole + 1 if has_rest and towards is ceil else whole


def _integer(value: Decimal, towards: Callable[[Any], int]) -> int:
    return towards(value)


_WHOLE: dict[CqlKind, Callable[[Any, Callable[[Any], int]], int]] = {
    CqlKind.TIMESTAMP: _milliseconds,
    CqlKind.VARINT: _integer,
}
"""Types whose cells are whole numbers, while compared values may have fractions."""
