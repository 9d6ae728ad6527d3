"""Spark's filters on a complete partition key → the partitions they leave. All others are Spark's to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import EqualNullSafe, EqualTo, Filter, In  # noqa: TID253  (they are its classes)

from tidemark.cassandra.partition_keys import PartitionKey, combine, is_exact, key_values
from tidemark.cassandra.table import Table


@dataclass(frozen=True, slots=True)
class Lookup:
    """Partitions that are read instead of the table."""

    keys: tuple[PartitionKey, ...]
    settled: tuple[Filter, ...]
    """Filters that need not be looked at again."""


def look_up(table: Table, filters: Sequence[Filter]) -> Lookup | None:
    """The partitions that can have matching rows; None where it takes the whole table to know."""
    chosen: dict[str, tuple[Filter, list[Any]]] = {}
    for each in filters:
        named = _named_values(each)
        if named is None or named[0] not in table.partition_key:
            continue
        column, values = named
        found = key_values(table.type_of(column), values)
        if found is not None and (column not in chosen or len(found) < len(chosen[column][1])):
            chosen[column] = (each, found)
    keys = combine(table.partition_key, {column: values for column, (_, values) in chosen.items()})
    if keys is None:
        return None
    settled = tuple(each for column, (each, _) in chosen.items() if is_exact(table.type_of(column)))
    return Lookup(tuple(keys), settled)


def _named_values(each: Filter) -> tuple[str, Sequence[Any]] | None:
    match each:
        case EqualTo(attribute=(column,), value=value) | EqualNullSafe(attribute=(column,), value=value):
            return column, [value]
        case In(attribute=(column,), value=values):
            return column, values
    return None
