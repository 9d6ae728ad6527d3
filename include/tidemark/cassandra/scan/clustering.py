"""Conditions on clustering columns → the restrictions that CQL takes for them. Pure.

The rule of CQL: ``=`` or ``IN`` on the first clustering columns, then a range on one more. Only where the
order and the equality of Cassandra are those of Arrow's values: floating point has two zeros, and UUIDs and
addresses sort by other rules than their text, so those have no ranges. What is not taken is left to the
caller.
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
"""Combinations of the values of ``IN`` in one statement; more of them are left to the caller."""

_HAS_EMPTY = frozenset({CqlKind.ASCII, CqlKind.BLOB, CqlKind.TEXT, CqlKind.VARCHAR})
"""Types whose empty cell is a value. For the others it is null, which sorts below all in Cassandra."""
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
    """How a column is compared, as CQL spells it."""

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
    """One condition that rows must meet: a column that is not null and compares so with one of the values."""

    column: str
    comparison: CqlOperator
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Restriction:
    """A condition as a statement has it, with the value that the driver takes."""

    column: str
    comparison: CqlOperator
    value: Any

    def __str__(self) -> str:
        return f"{protect_name(self.column)} {self.comparison} ?"


@dataclass(slots=True)
class Restricted:
    """What goes into a statement instead of being looked at afterwards."""

    restrictions: list[Restriction] = field(default_factory=list)
    settled: list[ColumnCondition] = field(default_factory=list)
    """Conditions that all rows found will meet."""
    is_empty: bool = False
    """Whether no row can meet them."""
    without_nulls: list[str] = field(default_factory=list)
    """Columns in which rows found may be null, against a settled condition: those are to be left out."""


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
    """The values that a cell may have; None where that cannot be said."""
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
    """One end of a range; None where Cassandra's order is not that of the values."""
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
    # No cell lies between two whole numbers: the one below the value bounds `>` and `<=`, the one above the
    # others.
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
"""Types whose cells are whole numbers where the values compared with them need not be."""
