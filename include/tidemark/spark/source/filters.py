"""Spark's filters → partition keys and restrictions for Cassandra. Spark applies all other filters.

A complete partition key becomes the partitions to read; clustering columns become restrictions of every
statement, in the form that CQL has for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import (  # noqa: TID253  (they are its classes)
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from tidemark.cassandra.scan.clustering import ColumnCondition, CqlOperator, Restriction, restrict
from tidemark.cassandra.scan.partition_keys import PartitionKey, combine, key_values
from tidemark.cassandra.table import Table

_RANGES = {
    GreaterThan: CqlOperator.GREATER,
    GreaterThanOrEqual: CqlOperator.GREATER_OR_EQUAL,
    LessThan: CqlOperator.LESS,
    LessThanOrEqual: CqlOperator.LESS_OR_EQUAL,
}


@dataclass(frozen=True, slots=True)
class Pushed:
    """What Cassandra is asked for."""

    keys: tuple[PartitionKey, ...] | None = None
    """The partitions to read; None for the whole table."""
    restrictions: tuple[Restriction, ...] = ()
    settled: tuple[Filter, ...] = ()
    """Filters that Spark need not apply again; each is exact also when it is the only one."""
    without_nulls: tuple[str, ...] = ()
    """Columns whose nulls must be dropped after reading: CQL has no such condition."""


def push(table: Table, filters: Sequence[Filter]) -> Pushed:
    """The part of these filters, all of which rows must meet, that Cassandra can apply."""
    found = [(each, condition) for each in filters if (condition := _condition(each)) is not None]
    within = restrict(table, [condition for _, condition in found])
    settled = [each for each, condition in found if any(condition is one for one in within.settled)]
    chosen: dict[str, tuple[Filter, list[Any]]] = {}
    for each, condition in found:
        column = condition.column
        if column not in table.partition_key or condition.comparison not in (
            CqlOperator.EQUAL,
            CqlOperator.IN,
        ):
            continue
        values = key_values(table.type_of(column), condition.values)
        if values is not None and (column not in chosen or len(values) < len(chosen[column][1])):
            chosen[column] = (each, values)
    keys = combine(table.partition_key, {column: values for column, (_, values) in chosen.items()})
    if within.is_empty:
        keys = []
    elif keys is not None:
        settled += [each for each, _ in chosen.values()]
    return Pushed(
        None if keys is None else tuple(keys),
        tuple(within.restrictions),
        tuple(settled),
        tuple(within.without_nulls),
    )


def _condition(each: Filter) -> ColumnCondition | None:
    match each:
        case EqualNullSafe(value=None):  # rows without a value cannot be looked up
            return None
        case EqualTo(attribute=(column,), value=value) | EqualNullSafe(attribute=(column,), value=value):
            return ColumnCondition(column, CqlOperator.EQUAL, (value,))
        case In(attribute=(column,), value=values):
            return ColumnCondition(column, CqlOperator.IN, tuple(values))
        case (
            GreaterThan(attribute=(column,), value=value)
            | GreaterThanOrEqual(attribute=(column,), value=value)
            | LessThan(attribute=(column,), value=value)
            | LessThanOrEqual(attribute=(column,), value=value)
        ):
            return ColumnCondition(column, _RANGES[type(each)], (value,))
    return None
