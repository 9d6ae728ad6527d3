"""Rows of a collection in one line each, and what a collection is as of a time, folded in memory."""

from collections.abc import Iterable, Sequence

from tidemark.cassandra.cql_types import parse_type
from tidemark.cassandra.python_values import PythonType
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.collection.tables.codec.python_rows import PythonRow
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.collection.tables.versions import OlderVersions, Version, obsolete
from tidemark.outputs.model.digest import shard_of

SHARDS = 4
ACCOUNTS = CollectionSchema(
    (Column("id", parse_type("text")),),
    (Column("owner", parse_type("text")), Column("balance", parse_type("int"))),
    SHARDS,
)
"""``{id: text}`` → ``{owner: text, balance: int}``."""
SEATS = CollectionSchema(
    (Column("hall", parse_type("text")), Column("seat", parse_type("int"))),
    (Column("guest", parse_type("text")),),
    SHARDS,
)
"""A key of two columns."""


def place_of(
    schema: CollectionSchema, keyspace: str = "collections", name: str = "accounts"
) -> CollectionPlace:
    return CollectionPlace("orders", "accounts", keyspace, name, schema)


def row(
    t: int,
    message_id: int,
    key: Sequence[object],
    values: Sequence[object] | None,
    schema: CollectionSchema = ACCOUNTS,
    partition: int = 0,
    topic: str = "accounts",
) -> CollectionRow:
    """The row of a message; without values it says that the key is gone. Values are the driver's."""
    cells = tuple(PythonType(one.type).encode(value) for one, value in zip(schema.key, key, strict=True))
    data: list[bytes | None] = [None] * len(schema.columns)
    for place, value in enumerate(values or ()):
        data[place] = None if value is None else PythonType(schema.columns[place].type).encode(value)
    shard = shard_of(key_bytes(cells), schema.shards)
    write_time = t + message_id % 1000
    return CollectionRow(
        cells, tuple(data), t, message_id, write_time, values is None, topic, partition, message_id, shard
    )


def python_row(one: CollectionRow, schema: CollectionSchema = ACCOUNTS) -> PythonRow:
    """What a reader gets of a row."""
    columns = [*schema.key, *schema.columns]
    cells = [*one.key, *one.values]
    return {
        column.name: PythonType(column.type).decode(cell) for column, cell in zip(columns, cells, strict=True)
    }


def newest(rows: Iterable[CollectionRow], at: int) -> dict[tuple[bytes, ...], CollectionRow]:
    """The newest row of each key up to a time, whether it is gone or not."""
    found: dict[tuple[bytes, ...], CollectionRow] = {}
    for one in sorted(rows, key=lambda row: (row.t, row.message_id)):
        if one.t <= at:
            found[one.key] = one
    return found


def state(rows: Iterable[CollectionRow], at: int) -> dict[tuple[bytes, ...], CollectionRow]:
    """The rows that a reader sees at a time, by key."""
    return {key: one for key, one in newest(rows, at).items() if not one.gone}


def obsolete_of(rows: Iterable[CollectionRow], since: int) -> list[OlderVersions]:
    """What is found of the keys that have versions which no time from ``since`` on sees."""
    there = sorted(
        (one for one in rows if one.t <= since), key=lambda one: (one.key, -one.t, -one.message_id)
    )
    return list(obsolete(Version(one.key, one.t, one.message_id, one.write_time) for one in there))
