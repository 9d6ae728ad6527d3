"""The schema changes of a journal keyspace: creation of a new one, and the nine migrations of an old one.

Pure: each change has its CQL text and a check whether a keyspace already has it. Every statement names its
keyspace: without it, the statement would apply to the session's keyspace or fail.
"""

from dataclasses import dataclass
from typing import Protocol

from tidemark.cassandra.replication import ONE_COPY, Copies, create_keyspace
from tidemark.journal_tables.schema.layout import TABLES, Found, name_of, qualified
from tidemark.pipeline.model import JournalDeclaration


class SchemaChange(Protocol):
    """One change of a keyspace's schema."""

    def statement(self, journal: JournalDeclaration) -> str:
        """The CQL text of the change."""

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """Whether the keyspace already has the change."""


@dataclass(frozen=True, slots=True)
class CreateKeyspace:
    """Creates the keyspace as declared. An existing one keeps its replication."""

    usual: Copies = ONE_COPY
    """The replication where none is declared."""

    def statement(self, journal: JournalDeclaration) -> str:
        """See ``SchemaChange.statement``."""
        declared = journal.replication
        copies = Copies(declared.strategy.value, declared.factors) if declared else self.usual
        return create_keyspace(journal.keyspace, copies)

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """See ``SchemaChange.is_done``."""
        return found.is_there


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Creates one of ``TABLES`` under its declared name."""

    table: str

    def statement(self, journal: JournalDeclaration) -> str:
        """See ``SchemaChange.statement``."""
        shape = TABLES[self.table]
        columns = "".join(f"{column} {kind}, " for column, kind in shape.columns.items())
        name = qualified(journal, self.table)
        return f"CREATE TABLE IF NOT EXISTS {name} ({columns}PRIMARY KEY {shape.primary_key})"

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """See ``SchemaChange.is_done``."""
        return name_of(journal, self.table) in found.tables


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Creates an index on a column of ``metajournal``."""

    column: str

    def statement(self, journal: JournalDeclaration) -> str:
        """See ``SchemaChange.statement``."""
        name = f"{name_of(journal, 'metajournal')}_{self.column}_idx"
        return f"CREATE INDEX IF NOT EXISTS {name} ON {qualified(journal, 'metajournal')} ({self.column})"

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """See ``SchemaChange.is_done``."""
        return (name_of(journal, "metajournal"), self.column) in found.indexed


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Adds a column that tables of old kafka-journal versions do not have."""

    table: str
    column: str

    def statement(self, journal: JournalDeclaration) -> str:
        """See ``SchemaChange.statement``."""
        kind = TABLES[self.table].columns[self.column]
        return f"ALTER TABLE {qualified(journal, self.table)} ADD {self.column} {kind}"

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """See ``SchemaChange.is_done``."""
        shape = found.tables.get(name_of(journal, self.table))
        return shape is not None and shape.columns.get(self.column) == TABLES[self.table].columns[self.column]


@dataclass(frozen=True, slots=True)
class DropTable:
    """Drops a table that kafka-journal no longer uses."""

    name: str

    def statement(self, journal: JournalDeclaration) -> str:
        """See ``SchemaChange.statement``."""
        return f"DROP TABLE IF EXISTS {journal.keyspace}.{self.name}"

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """True too where the pipeline declares that name for one of the current tables, which is not
        dropped."""
        return self.name not in found.tables or self.name in {name for _, name in journal.tables}


MIGRATIONS: tuple[SchemaChange, ...] = (
    AddColumn("journal", "headers"),
    AddColumn("journal", "version"),
    DropTable("metadata"),
    CreateTable("pointer2"),
    AddColumn("journal", "meta_record_id"),
    AddColumn("metajournal", "record_id"),
    # Repeated, because steps 2 and 6 of kafka-journal name no keyspace and therefore never dropped a table.
    DropTable("pointer"),
    DropTable("metadata"),
    DropTable("pointer"),
)
"""The migrations in order. The version of a keyspace is the index of the last one applied."""
SCHEMA_VERSION = len(MIGRATIONS) - 1
