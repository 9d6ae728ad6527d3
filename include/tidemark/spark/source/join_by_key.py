"""A DataFrame joined with a table by key: each key of the DataFrame is looked up, nothing else is read.

Every task looks up the distinct keys of its rows, many at a time, and puts the rows that it finds beside
them. Use it for few keys compared to the table; where most of a table is wanted, a scan and Spark's own join
are faster. A key with a null matches no row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.cassandra.cql_types import CqlType
from tidemark.cassandra.scan.columns import Selected, TypeMismatch, takes
from tidemark.cassandra.scan.partition_keys import PartitionKey, is_key, key_value
from tidemark.cassandra.scan.table_scan import ScanSettings, scan
from tidemark.cassandra.session import connect
from tidemark.cassandra.table import Table
from tidemark.connections import CassandraConnection
from tidemark.spark.source.errors import JoinRefused
from tidemark.spark.source.options import CassandraOptions
from tidemark.spark.source.reader import KEYS_IN_FLIGHT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Join(StrEnum):
    """Which rows are in the result."""

    INNER = "inner"
    """Those whose key is in the table."""
    LEFT = "left"
    """All of the DataFrame's; null beside those whose key is not in the table."""


LOOKED_UP_ROWS = 10_000
"""Rows of a DataFrame whose keys are looked up together."""


@dataclass(frozen=True, slots=True)
class KeyJoin:
    """One join, as it is sent to the tasks."""

    selected: Selected
    """What is read: the key's columns first, then the others that are wanted."""
    key: tuple[str, ...]
    """The columns of the DataFrame that have the key, in the order of the table's."""
    types: tuple[CqlType, ...]
    wanted: tuple[str, ...]
    """The table's columns that are put beside the rows."""
    how: Join

    @classmethod
    def of(
        cls,
        table: Table,
        schema: pa.Schema,
        on: Mapping[str, str],
        columns: Sequence[str] | None,
        how: Join,
    ) -> "KeyJoin":
        """A join of DataFrames with this schema; ``on``: their columns → the table's."""
        name, whole = str(table), table.primary_key
        for column in on:
            if column not in schema.names:
                raise JoinRefused(name, f"the DataFrame has no column `{column}`.")
        key = whole[: len(on)]
        if set(on.values()) != set(key) or len(key) < len(table.partition_key):
            raise JoinRefused(
                name,
                f"`on` must name the whole partition key ({', '.join(table.partition_key)}), and may go on "
                f"with clustering columns in their order; the primary key is ({', '.join(whole)}).",
            )
        chosen = [each.name for each in table.columns if each.name not in key] if columns is None else columns
        if doubled := sorted(set(chosen) & set(schema.names)):
            raise JoinRefused(
                name,
                f"the DataFrame has {', '.join(doubled)} already. Rename them there, or name the table's "
                "columns that you want in `columns`.",
            )
        sources = {target: source for source, target in on.items()}
        types = tuple(map(table.type_of, key))
        for target, cql_type in zip(key, types, strict=True):
            if not is_key(cql_type):
                raise JoinRefused(name, f"column `{target}` is a {cql_type}, which cannot be looked up.")
            given = schema.field(sources[target]).type
            if not takes(cql_type, given):
                raise TypeMismatch(target, cql_type, given)
        selected = Selected.of(table, [*key, *(each for each in chosen if each not in key)])
        return cls(selected, tuple(sources[target] for target in key), types, tuple(chosen), how)

    @property
    def found_fields(self) -> list[pa.Field]:
        """What is put beside the rows."""
        return [self.selected.schema.field(name) for name in self.wanted]

    def keys(self, batch: pa.Table) -> list[tuple[Any, ...] | None]:
        """The key of each row in the driver's types; None where no row of a table can have it."""
        columns = [
            [key_value(cql_type, value) for value in batch.column(name).to_pylist()]
            for name, cql_type in zip(self.key, self.types, strict=True)
        ]
        return [None if None in row else row for row in zip(*columns, strict=True)]

    def joined(self, rows: pa.Table, keys: Sequence[tuple[Any, ...] | None], found: pa.Table) -> pa.Table:
        """The rows with what was found for their keys beside them."""
        names = self.selected.columns[: len(self.key)]
        known: dict[tuple[Any, ...], list[int]] = {}
        columns = [
            [key_value(cql_type, value) for value in found.column(name).to_pylist()]
            for name, cql_type in zip(names, self.types, strict=True)
        ]
        for place, key in enumerate(zip(*columns, strict=True)):
            known.setdefault(key, []).append(place)
        nothing: list[int | None] = [None] if self.how is Join.LEFT else []
        pairs = [
            (left, right)
            for left, key in enumerate(keys)
            for right in (known.get(key, nothing) if key is not None else nothing)
        ]
        lefts = pa.array([left for left, _ in pairs], pa.int64())
        rights = pa.array([right for _, right in pairs], pa.int64())
        taken = rows.take(lefts)
        for field in self.found_fields:
            taken = taken.append_column(field, found.column(field.name).take(rights))
        return taken


def join_by_key(
    rows: "DataFrame",
    *,
    keyspace: str,
    table: str,
    on: str | Sequence[str] | Mapping[str, str],
    columns: Sequence[str] | None = None,
    how: str = "inner",
    **options: str,
) -> "DataFrame":
    """The rows of a DataFrame, joined with the rows of a table that have their key.

    ``rows``: the DataFrame, of a session in which ``register_cassandra`` was called.

    ``keyspace``, ``table``: the table, as Cassandra spells their names.

    ``on``: the columns of the key, which have the same names on both sides, or a mapping from the DataFrame's
    names to the table's. They must be the whole partition key; clustering columns may follow in their order.

    ``columns``: the table's columns to add; by default all outside the key. A name that the DataFrame has
    already is refused.

    ``how``: ``inner`` leaves out rows whose key is not in the table; ``left`` keeps them with nulls.

    ``options``: those of ``spark.read.format("cassandra")`` about the connection and reading.

    Returns a lazy DataFrame: the columns of ``rows``, then ``columns``; a row for each match. Raises
    ``JoinRefused`` or ``SchemaRefused`` before anything is read.
    """
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    from tidemark.spark.source.cassandra import in_words_of_spark, opened, to_arrow

    read, connection = opened(rows.sparkSession, {"keyspace": keyspace, "table": table, **options})
    described = read.described(connect(connection))
    if how not in list(Join):
        raise JoinRefused(str(described), f"`how` is `{how}`, and not inner or left.")
    names = [on] if isinstance(on, str) else on
    pairs = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    with in_words_of_spark(described):
        join = KeyJoin.of(described, to_arrow(rows.schema), pairs, columns, Join(how))
    found = from_arrow_schema(pa.schema(join.found_fields))
    schema = StructType([*rows.schema.fields, *found.fields])

    def look_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return look_up_all(join, connection, read, batches)

    return rows.mapInArrow(look_up, schema)


def look_up_all(
    join: KeyJoin,
    connection: CassandraConnection,
    options: CassandraOptions,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Look up the keys of a task's rows, and yield the joined rows."""
    session = connect(connection)
    settings = ScanSettings(options.read_level, options.fetch_rows, KEYS_IN_FLIGHT)
    for batch in batches:
        for start in range(0, batch.num_rows, LOOKED_UP_ROWS):
            rows = pa.Table.from_batches([batch.slice(start, LOOKED_UP_ROWS)])
            keys = join.keys(rows)
            parts = [PartitionKey(key) for key in dict.fromkeys(keys) if key is not None]
            found = pa.Table.from_batches(
                scan(session, join.selected, parts, settings), schema=join.selected.schema
            )
            yield from join.joined(rows, keys, found.combine_chunks()).to_batches()
