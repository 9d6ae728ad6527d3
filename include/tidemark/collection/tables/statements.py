"""The CQL statements on the tables of a collection, as texts. Decides nothing.

Every write carries a write time that follows from the message, so writes can be repeated and can arrive late.
"""

from tidemark.cassandra.table import quoted
from tidemark.collection.tables.layout import (
    GONE,
    MESSAGE_ID,
    OWN_COLUMNS,
    SHARD,
    CollectionPlace,
    T,
)


def row_columns(place: CollectionPlace) -> tuple[str, ...]:
    """The columns of a row, in the order of their values.

    The key is first, because the token is computed from it. Columns of fixed width are adjacent, so that one
    call packs them.
    """
    return (*place.key_columns, *OWN_COLUMNS, *place.data_columns)


def insert_row(place: CollectionPlace) -> str:
    """Writes a row whole: its columns in the order of ``row_columns``, then the write time."""
    return _insert(place.rows.cql_name, row_columns(place))


def delete_row(place: CollectionPlace) -> str:
    """Deletes the row of one message: the write time, the key, t and the message's id."""
    where = _equal(*place.key_columns, T, MESSAGE_ID)
    return f"DELETE FROM {place.rows.cql_name} USING TIMESTAMP ? WHERE {where}"


def delete_older(place: CollectionPlace) -> str:
    """Deletes the rows of a key before one: the write time, the key, t and the message's id of that row."""
    where = f"{_equal(*place.key_columns)} AND ({T}, {MESSAGE_ID}) < (?, ?)"
    return f"DELETE FROM {place.rows.cql_name} USING TIMESTAMP ? WHERE {where}"


def insert_change(place: CollectionPlace) -> str:
    """Writes that a key has rows at a time: shard, t, the key, then the write time."""
    return _insert(place.changes.cql_name, (SHARD, T, *place.key_columns))


def delete_changes(place: CollectionPlace) -> str:
    """Deletes what there is about a time in one shard: the write time, shard and t."""
    return f"DELETE FROM {place.changes.cql_name} USING TIMESTAMP ? WHERE {_equal(SHARD, T)}"


def select_row(place: CollectionPlace) -> str:
    """Reads the newest row of a key up to a time: the key and the time; ``gone``, then the data columns."""
    return (
        f"SELECT {quoted((GONE, *place.data_columns))} FROM {place.rows.cql_name} "
        f"WHERE {_equal(*place.key_columns)} AND {T} <= ? ORDER BY {T} DESC LIMIT 1"
    )


def _insert(table: str, columns: tuple[str, ...]) -> str:
    markers = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({quoted(columns)}) VALUES ({markers}) USING TIMESTAMP ?"


def _equal(*columns: str) -> str:
    return " AND ".join(f"{quoted((column,))} = ?" for column in columns)
