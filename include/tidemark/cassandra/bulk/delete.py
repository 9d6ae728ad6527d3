"""A DELETE for a DataFrame of keys: rows by their whole primary key, or all rows whose key begins so.

Only columns of the key are taken, so that a DataFrame of whole rows is not deleted by mistake; a key that is
not whole is refused unless ranges are asked for, because it deletes rows that the DataFrame does not name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from tidemark.cassandra.bulk.arrow_rows import Target
from tidemark.cassandra.bulk.row_errors import CountersRefused, KeyNotWhole, LifeOfNothing, NotOfTheKey
from tidemark.cassandra.bulk.row_statement import RowStatement, Using, check_types, using_targets, using_words
from tidemark.cassandra.table import Table, quoted


@dataclass(frozen=True, slots=True)
class Delete(RowStatement):
    """A DELETE, and what it takes from a batch."""

    @classmethod
    def of(cls, table: Table, schema: pa.Schema, using: Mapping[Using, int | str], ranges: bool) -> Self:
        """For batches of this schema; ``ranges``: whether keys may be the beginning of a key only."""
        if table.has_counters:
            raise CountersRefused(str(table))
        if Using.TTL in using:
            raise LifeOfNothing(str(table))
        used = using_targets(table, schema, using)
        names = [name for name in schema.names if name not in [target.name for target in used]]
        key = table.primary_key
        if others := [name for name in names if name not in key]:
            raise NotOfTheKey(str(table), tuple(others), key)
        whole = key if not ranges else _beginning(table, names)
        if missing := [name for name in whole if name not in names]:
            raise KeyNotWhole(str(table), tuple(missing), key)
        targets = [*used, *(Target(name, table.type_of(name), None) for name in whole)]
        check_types(targets, schema)
        where = " AND ".join(f"{quoted([name])} = ?" for name in whole)
        query = f"DELETE FROM {table.cql_name}{using_words(using)} WHERE {where}"
        return cls(table, tuple(targets), query)


def _beginning(table: Table, names: list[str]) -> tuple[str, ...]:
    """The columns of the key up to the last that is named: at least the partition key, without a gap."""
    key = table.primary_key
    last = max((key.index(name) for name in names), default=-1)
    return key[: max(last + 1, len(table.partition_key))]
