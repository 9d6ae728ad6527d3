"""Creates the keyspace and the tables of a collection where they are missing, and refuses others' tables.

Tables are created under the lock that also guards the schema of a journal, because two nodes that create one
table at the same moment give it two ids. Later processes find nothing to do and take no lock. An existing
table is never changed: other settings are another rendition, with tables of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from tidemark.cassandra.driver import Session
from tidemark.cassandra.replication import (
    create_keyspace,
    default_copies,
    local_nodes,
    read_copies,
    too_few_copies,
)
from tidemark.cassandra.schema.errors import GraceTooShort
from tidemark.cassandra.schema.lock import COLUMNS, ID_COLUMN, LOCKS, schema_lock
from tidemark.cassandra.schema.steps import AS_DESIGNED, SchemaLimits, SchemaSteps
from tidemark.cassandra.schema.tables import create_table, differences
from tidemark.cassandra.table import Column, Role, Table, find_table
from tidemark.collection.tables.errors import TableDiffers
from tidemark.collection.tables.layout import CollectionPlace

events = structlog.get_logger()

_GRACE = "SELECT table_name, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = %s"


@dataclass(frozen=True, slots=True)
class FoundTables:
    """What there is of a collection's tables.

    Attributes:
        tables: The existing ones by name, that of the lock among them.
        graces: ``gc_grace_seconds`` by table.
    """

    tables: Mapping[str, Table] = field(default_factory=dict)
    graces: Mapping[str, int] = field(default_factory=dict)


def create_collection(
    session: Session, place: CollectionPlace, limits: SchemaLimits = AS_DESIGNED
) -> tuple[str, ...]:
    """Creates what is missing, and returns the statements that were sent; none where nothing was.

    Raises TableDiffers or GraceTooShort where a table is refused, SchemaLockHeld or SchemaLockOverrun where
    the lock cannot be had or kept, SchemaStepFailed otherwise.
    """
    steps = SchemaSteps(session, place.pipeline, place.keyspace)
    if not missing_tables(place, _found(session, place, limits)):
        return ()
    # The lock is a row of the keyspace, so these two have to be created without it.
    copies = place.copies or default_copies(*local_nodes(session))
    if read_copies(session, place.keyspace) is None:
        statement = create_keyspace(place.keyspace, copies)
        steps.make(statement, lambda: read_copies(session, place.keyspace) is not None)
    _create(session, steps, _lock_table(place.keyspace))
    if warning := too_few_copies(session, place.keyspace):
        events.warning("too few copies", pipeline=place.pipeline, problem=warning)
    with schema_lock(session, place.pipeline, place.keyspace, LOCKS, limits.wait) as check:
        steps.check = check
        # Another process may have created them meanwhile, through a node whose schema ours lacks yet.
        found = steps.reread(lambda: _found(session, place, limits), "agree on the schema")
        for table in missing_tables(place, found):
            _create(session, steps, table)
        _found(session, place, limits)
    events.info("tables of a collection made ready", table=str(place), statements=len(steps.sent))
    return tuple(steps.sent)


def missing_tables(place: CollectionPlace, found: FoundTables) -> list[Table]:
    """The tables to create. The changes come first: rows without them would not be found by their time."""
    return [table for table in (place.changes, place.rows) if table.name not in found.tables]


def refuse(place: CollectionPlace, found: FoundTables, shortest_grace: int) -> None:
    """Raises TableDiffers or GraceTooShort where an existing table cannot be this collection's."""
    for table in (place.rows, place.changes):
        there = found.tables.get(table.name)
        if there is None:
            continue
        if problems := list(differences(table, there)):
            raise TableDiffers(place.pipeline, place.writer, str(table), problems)
        grace = found.graces.get(table.name, shortest_grace)
        if grace < shortest_grace:
            raise GraceTooShort(place.pipeline, place.keyspace, table.name, grace, shortest_grace)


def _found(session: Session, place: CollectionPlace, limits: SchemaLimits) -> FoundTables:
    """What there is now. Raises where it is refused."""
    names = (place.rows.name, place.changes.name)
    tables = (find_table(session, place.keyspace, name) for name in names)
    graces = {row.table_name: row.gc_grace_seconds for row in session.execute(_GRACE, (place.keyspace,))}
    found = FoundTables({table.name: table for table in tables if table is not None}, graces)
    refuse(place, found, limits.shortest_grace)
    return found


def _create(session: Session, steps: SchemaSteps, table: Table) -> None:
    def is_there() -> bool:
        return find_table(session, table.keyspace, table.name) is not None

    if not is_there():
        steps.make(create_table(table), is_there)


def _lock_table(keyspace: str) -> Table:
    roles = {ID_COLUMN: Role.PARTITION_KEY}
    columns = (Column(name, kind, roles.get(name, Role.REGULAR)) for name, kind in COLUMNS.items())
    return Table(keyspace, LOCKS, tuple(columns))
