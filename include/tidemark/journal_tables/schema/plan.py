"""The plan for a journal keyspace: the schema steps it still needs, decided from its current schema. Pure.

Refuses a keyspace of a newer version and one whose tables are not kafka-journal's: a plan can drop tables,
and must drop only those of kafka-journal.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.cassandra.schema.errors import GraceTooShort
from tidemark.journal_tables.errors import SchemaDiffers, SchemaVersionUnknown
from tidemark.journal_tables.schema.changes import (
    MIGRATIONS,
    AddColumn,
    CreateIndex,
    CreateTable,
    DropTable,
    SchemaChange,
)
from tidemark.journal_tables.schema.layout import (
    CREATED,
    DATA,
    INDEXED,
    NEVER_NAMED,
    OLD_KEYS,
    PROMISED,
    TABLES,
    Found,
    name_of,
)
from tidemark.pipeline.model import JournalDeclaration


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """A schema change (None for none) and the version to store after it."""

    change: SchemaChange | None
    version: int | None = None
    """None where the stored version does not change."""


def plan(
    journal: JournalDeclaration, found: Found, migrations: Sequence[SchemaChange] = MIGRATIONS
) -> tuple[SchemaStep, ...]:
    """The remaining steps in order; empty for a keyspace that is up to date."""
    missing = [table for table in CREATED if not CreateTable(table).is_done(journal, found)]
    indexes = [column for column in INDEXED if not CreateIndex(column).is_done(journal, found)]
    steps = [SchemaStep(CreateTable(table)) for table in missing] + [
        SchemaStep(CreateIndex(each)) for each in indexes
    ]
    version = stored_version(found.version)
    if version is None and len(missing) == len(CREATED):
        # The tables are created in the shape that the last migration leaves, so no migration is needed.
        return (*steps, SchemaStep(None, len(migrations) - 1))
    first = 0 if version is None else max(version + 1, 0)
    return (*steps, *(SchemaStep(change, i) for i, change in enumerate(migrations) if i >= first))


def stored_version(value: str | None) -> int | None:
    """The index of the last applied migration; None where the stored value is missing or not a number."""
    # int() alone would also accept blanks and underscores, which kafka-journal does not.
    return int(value) if value is not None and re.fullmatch(r"[+-]?[0-9]+", value) else None


def refuse(
    pipeline: str, journal: JournalDeclaration, found: Found, steps: Sequence[SchemaStep], shortest_grace: int
) -> None:
    """Raises where these steps would not make the keyspace usable, or where it must not be changed.

    The errors are SchemaVersionUnknown, SchemaDiffers and GraceTooShort.
    """
    version = stored_version(found.version)
    if version is not None and version >= len(MIGRATIONS):
        raise SchemaVersionUnknown(pipeline, journal.keyspace, str(version), len(MIGRATIONS) - 1)
    changes = [step.change for step in steps]
    if differences := [*_differences(journal, found, changes), *_not_old(journal, found, changes)]:
        raise SchemaDiffers(pipeline, journal.keyspace, differences)
    for table in DATA:
        grace = found.graces.get(name_of(journal, table))
        if grace is not None and grace < shortest_grace:
            raise GraceTooShort(pipeline, journal.keyspace, name_of(journal, table), grace, shortest_grace)


def beside_pointers(journal: JournalDeclaration, found: Found, steps: Sequence[SchemaStep]) -> list[str]:
    """The names of the data tables that these steps would create although pointers may vouch for their
    data."""
    if name_of(journal, "pointer2") not in found.tables:
        return []
    changes = [step.change for step in steps]
    return [name_of(journal, table) for table in PROMISED if CreateTable(table) in changes]


def _differences(
    journal: JournalDeclaration, found: Found, changes: Sequence[SchemaChange | None]
) -> Iterator[str]:
    """The differences that would break writing and that no planned change removes. Extra columns are fine."""
    for table, wanted in TABLES.items():
        name = name_of(journal, table)
        shape = found.tables.get(name)
        if shape is None:
            continue
        if shape.primary_key != wanted.primary_key:
            yield f"{name} has the primary key {shape.primary_key} instead of {wanted.primary_key}"
        for column, kind in wanted.columns.items():
            actual = shape.columns.get(column)
            is_added = AddColumn(table, column) in changes
            if actual is None and (table, column) not in NEVER_NAMED and not is_added:
                yield f"{name} has no column {column} {kind}"
            elif actual is not None and actual != kind:
                yield f"{name}.{column} is {actual} instead of {kind}"


def _not_old(
    journal: JournalDeclaration, found: Found, changes: Sequence[SchemaChange | None]
) -> Iterator[str]:
    """The tables that a planned drop names and that are not kafka-journal's."""
    for name, key in OLD_KEYS.items():
        drop = DropTable(name)
        if drop in changes and not drop.is_done(journal, found) and found.tables[name].primary_key != key:
            actual = found.tables[name].primary_key
            yield (
                f"{name} has the primary key {actual} instead of {key}: it is not kafka-journal's old table, "
                "which would have to be dropped"
            )
