"""The changes that make a keyspace a journal: those for a new one, and the nine for one of any age.

Pure: statements as text, and whether a keyspace shows what they are for. No statement names a table without
its keyspace: it would hit whatever the session is in, or nothing at all.
"""

from dataclasses import dataclass
from typing import Protocol

from tidemark.cassandra.replication import ONE_COPY, Copies
from tidemark.journal_tables.schema.layout import TABLES, Found, name_of, qualified
from tidemark.pipeline.model import JournalDeclaration


class SchemaChange(Protocol):
    """One change of a keyspace's schema."""

    def statement(self, journal: JournalDeclaration) -> str:
        """The CQL for it."""

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """Whether the keyspace shows it."""


@dataclass(frozen=True, slots=True)
class CreateKeyspace:
    """The keyspace as declared. One that is there keeps the replication it has."""

    usual: Copies = ONE_COPY
    """What it gets where nothing is declared."""

    def statement(self, journal: JournalDeclaration) -> str:
        """See ``SchemaChange.statement``."""
        declared = journal.replication
        copies = Copies(declared.strategy.value, declared.factors) if declared else self.usual
        factors = "".join(f", '{place}': {count}" for place, count in copies.factors.items())
        replication = f"{{'class': '{copies.strategy}'{factors}}}"
        return f"CREATE KEYSPACE IF NOT EXISTS {journal.keyspace} WITH replication = {replication}"

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """See ``SchemaChange.is_done``."""
        return found.is_there


@dataclass(frozen=True, slots=True)
class CreateTable:
    """One of ``TABLES``, under the name that is declared for it."""

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
    """An index on a column of ``metajournal``."""

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
    """A column that a table made by an old kafka-journal does not have."""

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
    """A table that kafka-journal no longer has."""

    name: str

    def statement(self, journal: JournalDeclaration) -> str:
        """See ``SchemaChange.statement``."""
        return f"DROP TABLE IF EXISTS {journal.keyspace}.{self.name}"

    def is_done(self, journal: JournalDeclaration, found: Found) -> bool:
        """Also where the name was declared for one of today's tables: that one is not old."""
        return self.name not in found.tables or self.name in {name for _, name in journal.tables}


MIGRATIONS: tuple[SchemaChange, ...] = (
    AddColumn("journal", "headers"),
    AddColumn("journal", "version"),
    DropTable("metadata"),
    CreateTable("pointer2"),
    AddColumn("journal", "meta_record_id"),
    AddColumn("metajournal", "record_id"),
    # Twice, because kafka-journal's own steps 2 and 6 name no keyspace and have dropped nothing anywhere.
    DropTable("pointer"),
    DropTable("metadata"),
    DropTable("pointer"),
)
"""By index: the version of a keyspace is the index of the last one that was applied to it."""
SCHEMA_VERSION = len(MIGRATIONS) - 1
