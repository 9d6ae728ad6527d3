"""An INSERT for the columns of a DataFrame: which go where, what is refused, and the statement itself.

Every column must be one of the table's, or the one that has each row's write time or time to live. The whole
primary key must be there, and no part of it may be null. Counters are refused: adding to one is nothing that
may be repeated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from tidemark.cassandra import cells
from tidemark.cassandra.bulk.arrow_rows import FIXED_WIDTH, Target
from tidemark.cassandra.bulk.row_errors import CountersRefused, KeyMissing
from tidemark.cassandra.bulk.row_statement import RowStatement, Using, check_types, using_targets, using_words
from tidemark.cassandra.table import Table, quoted


@dataclass(frozen=True, slots=True)
class Columns:
    """How the columns of a DataFrame are meant."""

    using: Mapping[Using, int | str] = field(default_factory=dict)
    """A number for all rows, or the name of the column that has each row's own."""
    ignore_nulls: bool = True
    """Whether null leaves a column of the table as it is, instead of removing what it has."""


@dataclass(frozen=True, slots=True)
class Insert(RowStatement):
    """An INSERT, and what it takes from a batch."""

    @classmethod
    def of(cls, table: Table, schema: pa.Schema, columns: Columns) -> Self:
        """For batches of this schema."""
        if table.has_counters:
            raise CountersRefused(str(table))
        used = using_targets(table, schema, columns.using)
        absent, key = cells.UNSET if columns.ignore_nulls else cells.NULL, table.primary_key
        targets = [
            Target(name, table.type_of(name), None if name in key else absent)
            for name in schema.names
            if name not in [target.name for target in used]
        ]
        if missing := [name for name in key if name not in schema.names]:
            raise KeyMissing(str(table), tuple(missing), key)
        targets.sort(key=lambda target: target.cql_type.kind not in FIXED_WIDTH)
        names = [target.name for target in targets]
        markers = ", ".join("?" * len(names))
        query = f"INSERT INTO {table.cql_name} ({quoted(names)}) VALUES ({markers})"
        targets += used
        check_types(targets, schema)
        return cls(table, tuple(targets), query + using_words(columns.using))
