"""Spark's filters → what Cassandra is asked for instead of everything. All others are Spark's to do.

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
    """What is asked for."""

    keys: tuple[PartitionKey, ...] | None = None
    """Partitions that are read instead of the table; None where it takes the whole table to know."""
    restrictions: tuple[Restriction, ...] = ()
    settled: tuple[Filter, ...] = ()
    """Filters that need not be looked at again, and that would leave the same if they were the only ones."""
    without_nulls: tuple[str, ...] = ()
    """Columns that rows must have a value in, which Cassandra cannot be told."""


def push(table: Table, filters: Sequence[Filter]) -> Pushed:
    """What these filters, which rows must all meet, leave to read."""
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
        case EqualNullSafe(value=None):  # rows without a value: nothing that could be looked up
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
