"""Creates and migrates the schema of a journal keyspace. kafka-journal's clients do the same when they start.

The first process creates the tables and applies the migrations, under a lock that kafka-journal's clients
take too. Later processes find nothing to do and take no lock. Refuses a keyspace of a newer version, one
whose tables are not kafka-journal's, and one that has pointers but has lost the data tables. A failed
migration does not advance the version, so the next start tries it again.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from tidemark.cassandra.driver import Session
from tidemark.cassandra.failures import FAILURES
from tidemark.cassandra.replication import default_copies, local_nodes, too_few_copies
from tidemark.cassandra.schema.errors import SchemaStepFailed
from tidemark.cassandra.schema.lock import origin, schema_lock
from tidemark.cassandra.schema.steps import AS_DESIGNED, SchemaLimits, SchemaSteps, describe
from tidemark.cassandra.schema.waiting import once_usable
from tidemark.journal_tables.errors import SchemaDiffers, TablesLost
from tidemark.journal_tables.schema.changes import CreateKeyspace, CreateTable, DropTable, SchemaChange
from tidemark.journal_tables.schema.found import VERSION_KEY, read_keyspace, with_consistency
from tidemark.journal_tables.schema.layout import Found, name_of, qualified
from tidemark.journal_tables.schema.plan import SchemaStep, beside_pointers, plan, refuse
from tidemark.pipeline.model import JournalDeclaration

events = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The changes made to a keyspace. Empty in all starts but the first."""

    statements: tuple[str, ...] = ()
    """The statements that were sent to change the schema."""
    migrations: tuple[int, ...] = ()
    """The indexes of the migrations that were applied."""
    fresh: bool = False
    """Whether none of the tables existed, so that no migration was needed."""


def create_journal(
    session: Session, pipeline: str, journal: JournalDeclaration, limits: SchemaLimits = AS_DESIGNED
) -> Prepared:
    """Creates the missing keyspace and tables, and migrates existing tables to the current version.

    Raises SchemaVersionUnknown, SchemaDiffers, GraceTooShort or TablesLost where the keyspace is refused,
    SchemaLockHeld or SchemaLockOverrun where the lock cannot be had or kept, SchemaStepFailed otherwise.
    """
    return _Setup(session, pipeline, journal, limits).run()


class _Setup:
    """One run of ``create_journal``."""

    def __init__(
        self, session: Session, pipeline: str, journal: JournalDeclaration, limits: SchemaLimits
    ) -> None:
        self._session, self._pipeline, self._journal, self._limits = session, pipeline, journal, limits
        self._found = Found()
        self._steps = SchemaSteps(session, pipeline, journal.keyspace)

    def run(self) -> Prepared:
        """Makes the missing changes, under the lock where there are any."""
        self._found = self._read()
        if not self._plan():
            return Prepared()
        # The lock is a row of the keyspace, so these two have to be created without it.
        for change in (CreateKeyspace(default_copies(*local_nodes(self._session))), CreateTable("locks")):
            self._make(change)
        if warning := too_few_copies(self._session, self._journal.keyspace):
            events.warning("too few copies", pipeline=self._pipeline, problem=warning)
        keyspace, locks = self._journal.keyspace, name_of(self._journal, "locks")
        with schema_lock(self._session, self._pipeline, keyspace, locks, self._limits.wait) as check:
            self._steps.check = check
            # Another process may have made the changes meanwhile, through a node whose schema ours lacks yet.
            self._found = self._steps.reread(self._read, "agree on the schema before it is changed")
            steps = self._plan()
            self._refuse_lost(steps)  # under the lock, because another process may have been creating them
            for step in steps:
                self._apply(step)
            self._refuse(())
        migrated = tuple(step.version for step in steps if step.change and step.version is not None)
        fresh = any(step.change is None for step in steps)
        done = {"statements": len(self._steps.sent), "migrations": migrated}
        events.info("journal schema made ready", keyspace=self._journal.keyspace, **done)
        return Prepared(tuple(self._steps.sent), migrated, fresh)

    def _plan(self) -> tuple[SchemaStep, ...]:
        steps = plan(self._journal, self._found)
        self._refuse(steps)
        return steps

    def _refuse(self, steps: tuple[SchemaStep, ...]) -> None:
        refuse(self._pipeline, self._journal, self._found, steps, self._limits.shortest_grace)

    def _refuse_lost(self, steps: tuple[SchemaStep, ...]) -> None:
        """Raises TablesLost where data tables are missing although this writer's topics have pointers."""
        missing = beside_pointers(self._journal, self._found, steps)
        if not missing:
            return
        query = with_consistency(self._journal, f"SELECT topic FROM {qualified(self._journal, 'pointer2')}")
        try:
            topics = {row.topic for row in self._session.execute(query)}
        except FAILURES as error:
            raise self._failed("look for pointers", describe(error)) from error
        if own := sorted(topic for topic in topics if re.search(self._journal.namespaces, topic)):
            place = (self._pipeline, self._journal.name, self._journal.keyspace)
            raise TablesLost(*place, missing, own[0])

    def _apply(self, step: SchemaStep) -> None:
        if step.change:
            self._make(step.change, step.version)
        if step.version is not None:
            self._write_version(step.version)

    def _make(self, change: SchemaChange, migration: int | None = None) -> None:
        """Makes a change where it is missing. Raises SchemaStepFailed where it is still missing then."""
        if change.is_done(self._journal, self._found):
            return
        if isinstance(change, DropTable):
            self._save_old_table(change.name)
        statement = change.statement(self._journal)
        step = statement if migration is None else f"migration {migration}, {statement}"
        self._steps.make(statement, lambda: self._has(change), step)

    def _has(self, change: SchemaChange) -> bool:
        self._found = self._read()
        return change.is_done(self._journal, self._found)

    def _read(self) -> Found:
        return once_usable(lambda: read_keyspace(self._session, self._journal))

    def _write_version(self, version: int) -> None:
        self._steps.check()
        setting, now = qualified(self._journal, "setting"), datetime.now(UTC)
        query = f"INSERT INTO {setting} (key, value, timestamp, origin) VALUES (%s, %s, %s, %s)"
        values = (VERSION_KEY, str(version), now, origin())
        try:
            self._session.execute(with_consistency(self._journal, query), values)
        except FAILURES as error:
            raise self._failed(f"write version {version}", describe(error)) from error

    def _save_old_table(self, old_table: str) -> None:
        """Saves the data of an old table before it is dropped. Raises SchemaDiffers where it is too much."""
        try:
            if old_table == "pointer":
                self._copy_pointers()
            elif self._has_rows(f"{self._journal.keyspace}.{old_table}") and not self._has_rows(
                qualified(self._journal, "metajournal")
            ):
                # Too many heads to move under a lock that expires after a minute.
                raise SchemaDiffers(
                    self._pipeline,
                    self._journal.keyspace,
                    [f"its heads are all in the old table {old_table}, which would have to be dropped"],
                )
        except FAILURES as error:
            raise self._failed(f"save what is in {old_table}", describe(error)) from error

    def _copy_pointers(self) -> None:
        # Each keeps its write timestamp, so that a newer one in pointer2 wins.
        old, new = f"{self._journal.keyspace}.pointer", qualified(self._journal, "pointer2")
        columns = "topic, partition, offset, created, updated"
        select = with_consistency(self._journal, f"SELECT {columns}, WRITETIME(offset) FROM {old}")
        insert = f"INSERT INTO {new} ({columns}) VALUES (%s, %s, %s, %s, %s) USING TIMESTAMP %s"
        for row in self._session.execute(select):
            if row.offset is not None:
                self._session.execute(with_consistency(self._journal, insert), tuple(row))

    def _has_rows(self, table: str) -> bool:
        query = with_consistency(self._journal, f"SELECT topic FROM {table} LIMIT 1")
        return self._session.execute(query).one() is not None

    def _failed(self, step: str, cause: str) -> SchemaStepFailed:
        return self._steps.failed(step, cause)
