"""What is to be done about a journal keyspace: decided from what it has, before anything is touched.

Pure. A keyspace that is newer than we know, or whose tables are not what the plan takes them for, is refused
whole: a plan contains drops, and they are meant for kafka-journal's tables only.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.journal_tables.errors import GraceTooShort, SchemaDiffers, SchemaVersionUnknown
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
    """A change, and the version that the keyspace has after it."""

    change: SchemaChange | None
    version: int | None = None
    """None: it stays as it is."""


def plan(
    journal: JournalDeclaration, found: Found, migrations: Sequence[SchemaChange] = MIGRATIONS
) -> tuple[SchemaStep, ...]:
    """The steps that are left, in order; none for a keyspace that is ready."""
    missing = [table for table in CREATED if not CreateTable(table).is_done(journal, found)]
    indexes = [column for column in INDEXED if not CreateIndex(column).is_done(journal, found)]
    steps = [SchemaStep(CreateTable(table)) for table in missing] + [
        SchemaStep(CreateIndex(each)) for each in indexes
    ]
    version = stored_version(found.version)
    if version is None and len(missing) == len(CREATED):
        # Fresh: the tables are created as the last migration leaves them.
        return (*steps, SchemaStep(None, len(migrations) - 1))
    first = 0 if version is None else max(version + 1, 0)
    return (*steps, *(SchemaStep(change, i) for i, change in enumerate(migrations) if i >= first))


def stored_version(value: str | None) -> int | None:
    """The index of the last migration; None where nobody has left a number."""
    # Not int() alone, which also takes blanks and underscores: kafka-journal does not.
    return int(value) if value is not None and re.fullmatch(r"[+-]?[0-9]+", value) else None


def refuse(
    pipeline: str, journal: JournalDeclaration, found: Found, steps: Sequence[SchemaStep], shortest_grace: int
) -> None:
    """Refuse a keyspace that these steps would not make ready, or that they must not touch."""
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
    """The tables of data that these steps would make where pointers may promise data already."""
    if name_of(journal, "pointer2") not in found.tables:
        return []
    changes = [step.change for step in steps]
    return [name_of(journal, table) for table in PROMISED if CreateTable(table) in changes]


def _differences(
    journal: JournalDeclaration, found: Found, changes: Sequence[SchemaChange | None]
) -> Iterator[str]:
    """What would break writing and no change is going to put right. Further columns do no harm."""
    for table, wanted in TABLES.items():
        name = name_of(journal, table)
        shape = found.tables.get(name)
        if shape is None:
            continue
        if shape.primary_key != wanted.primary_key:
            yield f"{name} has the primary key {shape.primary_key} instead of {wanted.primary_key}"
        for column, kind in wanted.columns.items():
            has = shape.columns.get(column)
            if has is None and (table, column) not in NEVER_NAMED and AddColumn(table, column) not in changes:
                yield f"{name} has no column {column} {kind}"
            elif has is not None and has != kind:
                yield f"{name}.{column} is {has} instead of {kind}"


def _not_old(
    journal: JournalDeclaration, found: Found, changes: Sequence[SchemaChange | None]
) -> Iterator[str]:
    """Tables that would be dropped for their names alone."""
    for name, key in OLD_KEYS.items():
        drop = DropTable(name)
        if drop in changes and not drop.is_done(journal, found) and found.tables[name].primary_key != key:
            has = found.tables[name].primary_key
            yield (
                f"{name} has the primary key {has} instead of {key}: it is not kafka-journal's old table, "
                "which would have to be dropped"
            )
