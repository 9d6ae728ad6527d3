"""Drops both tables of a rendition of a collection. They belong to the writer alone."""

from dataclasses import dataclass

from tidemark.cassandra.schema.lock import LOCKS
from tidemark.cassandra.schema.removal import drop_tables, existing
from tidemark.cassandra.session import connect
from tidemark.collection.tables.layout import CHANGES
from tidemark.connections import CassandraConnection
from tidemark.writers.collection.kind import CollectionDeclaration
from tidemark.writers.removal import DropOption, PlaceContents


@dataclass(frozen=True)
class CollectionRemoval:
    """See ``PlaceRemoval``.

    Attributes:
        pipeline: The pipeline's name, for errors.
        declared: The writer at the rendition's place.
        connection: Cassandra.
    """

    pipeline: str
    declared: CollectionDeclaration
    connection: CassandraConnection

    @property
    def option(self) -> DropOption | None:
        """None: nothing but the collection is in its tables."""
        return None

    @property
    def tables(self) -> tuple[str, str]:
        """The rows first: changes without rows mislead no reader."""
        return self.declared.table_name, f"{self.declared.table_name}{CHANGES}"

    def look(self) -> PlaceContents:
        """See ``PlaceRemoval.look``."""
        keyspace = self.declared.keyspace
        found = existing(connect(self.connection), keyspace, self.tables)
        what = " and ".join(f"{keyspace}.{name}" for name in self.tables)
        return PlaceContents(f"tables {what}", bool(found))

    def drop(self) -> None:
        """See ``PlaceRemoval.drop``."""
        drop_tables(connect(self.connection), self.pipeline, self.declared.keyspace, self.tables, LOCKS)
