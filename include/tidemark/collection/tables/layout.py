"""The two tables of a collection: their columns and keys, from the collection's schema. Pure.

Collections, sets, maps and tuples are stored frozen: a row is written whole, and a cell that is one value is
read back as one, an empty set included.
"""

from dataclasses import dataclass

from tidemark.cassandra.cql_types import CqlKind, CqlType
from tidemark.cassandra.replication import Copies
from tidemark.cassandra.table import Column, Role, Table
from tidemark.collection.model.schema import SYSTEM_COLUMNS, CollectionSchema
from tidemark.collection.tables.errors import ColumnNameTaken
from tidemark.pipeline.model import Consistency

CHANGES = "_changes"
T, MESSAGE_ID, GONE, TOPIC, PARTITION, OFFSET = SYSTEM_COLUMNS
SHARD = "shard"
OWN_COLUMNS = (T, MESSAGE_ID, GONE, PARTITION, OFFSET, TOPIC)
"""The columns of a row besides its key and data, in the order in which they are written and read: those of
fixed width first."""

_FROZEN = frozenset({CqlKind.LIST, CqlKind.MAP, CqlKind.SET, CqlKind.TUPLE})


@dataclass(frozen=True, slots=True)
class CollectionPlace:
    """Where a rendition of a collection is, and what its rows consist of.

    Attributes:
        pipeline: The pipeline, for error texts.
        writer: The writer, for error texts.
        keyspace: The keyspace of both tables.
        name: The table of the rows; that of the changes is named after it.
        schema: The columns and the number of shards.
        consistency: The consistency level of reads and writes.
        copies: The declared replication of the keyspace; None for the usual one.
    """

    pipeline: str
    writer: str
    keyspace: str
    name: str
    schema: CollectionSchema
    consistency: Consistency = Consistency.LOCAL_QUORUM
    copies: Copies | None = None

    def __str__(self) -> str:
        return f"{self.keyspace}.{self.name}"

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(column.name for column in self.schema.key)

    @property
    def data_columns(self) -> tuple[str, ...]:
        """The names of the data columns."""
        return tuple(column.name for column in self.schema.columns)

    @property
    def rows(self) -> Table:
        """The table of the rows: a partition for each key, its newest message first."""
        return Table(
            self.keyspace,
            self.name,
            (
                *(Column(one.name, stored_type(one.type), Role.PARTITION_KEY) for one in self.schema.key),
                Column(T, "bigint", Role.CLUSTERING, is_descending=True),
                Column(MESSAGE_ID, "bigint", Role.CLUSTERING, is_descending=True),
                *(Column(one.name, stored_type(one.type)) for one in self.schema.columns),
                Column(GONE, "boolean"),
                Column(TOPIC, "text"),
                Column(PARTITION, "int"),
                Column(OFFSET, "bigint"),
            ),
        )

    @property
    def changes(self) -> Table:
        """The table of the changes: a partition for each shard and time, with the keys that have rows then.

        Raises ColumnNameTaken where a key column has the name of one of its own.
        """
        name = f"{self.name}{CHANGES}"
        if SHARD in self.key_columns:
            raise ColumnNameTaken(self.pipeline, self.writer, SHARD, f"{self.keyspace}.{name}")
        return Table(
            self.keyspace,
            name,
            (
                Column(SHARD, "int", Role.PARTITION_KEY),
                Column(T, "bigint", Role.PARTITION_KEY),
                *(Column(one.name, stored_type(one.type), Role.CLUSTERING) for one in self.schema.key),
            ),
        )


def stored_type(cql_type: CqlType) -> str:
    """The type of a column, as Cassandra's own tables spell it."""
    if cql_type.kind is CqlKind.VARCHAR:
        return CqlKind.TEXT
    if cql_type.kind is CqlKind.VECTOR:
        return str(cql_type)
    inside = ", ".join(map(stored_type, cql_type.elements))
    found = f"{cql_type.kind}<{inside}>" if inside else str(cql_type)
    return f"frozen<{found}>" if cql_type.kind in _FROZEN else found
