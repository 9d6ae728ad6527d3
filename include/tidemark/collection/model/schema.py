"""The columns of a collection: its key, its data, and the names that the table needs for itself.

The types are CQL types; which of them a column may have is decided in ``column_types``. Nothing here knows
statements.
"""

from dataclasses import dataclass

from tidemark.cassandra.type_tree import CqlType

SYSTEM_COLUMNS = ("t", "message_id", "gone", "topic", "partition", "offset")
"""The columns that a collection's table has besides its own. Neither a key column nor a data column may be
called like them.

``message_id`` is the message's id in the commit log; it is not called ``id``, because that is the commonest
name of a key column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a collection."""

    name: str
    type: CqlType


@dataclass(frozen=True, slots=True)
class CollectionSchema:
    """What the rows of a collection consist of.

    Attributes:
        key: The key columns, in the order of the file. They are the table's partition key.
        columns: The data columns, in the order of the file.
        shards: Into how many shards the keys are divided; fixed for a rendition.
    """

    key: tuple[Column, ...]
    columns: tuple[Column, ...]
    shards: int
