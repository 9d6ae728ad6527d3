"""Makes a keyspace ready for a journal, beside kafka-journal's clients, which do the same when they start.

Whoever comes first creates the tables and applies the migrations, under a lock that all keep to; the others
find nothing to do and take no lock. A keyspace that is newer than we know, or whose tables are others than
kafka-journal's, is refused, and so is one that has lost tables which its pointers speak of. A migration that
fails leaves the version where it is: nothing passes it unseen.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from tidemark.cassandra.driver import Session
from tidemark.cassandra.replication import default_copies, local_nodes, too_few_copies
from tidemark.consensus.lightweight import FAILURES
from tidemark.journal_tables.errors import SchemaDiffers, SchemaStepFailed, TablesLost
from tidemark.journal_tables.schema.changes import CreateKeyspace, CreateTable, DropTable, SchemaChange
from tidemark.journal_tables.schema.found import VERSION_KEY, read_keyspace, with_consistency
from tidemark.journal_tables.schema.layout import Found, qualified
from tidemark.journal_tables.schema.lock import STEP, origin, schema_lock
from tidemark.journal_tables.schema.plan import SchemaStep, beside_pointers, plan, refuse
from tidemark.journal_tables.schema.waiting import once_usable
from tidemark.pipeline.model import JournalDeclaration

events = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """What only tests have otherwise."""

    wait: float = 60.0
    """Seconds to wait for somebody else's lock."""
    shortest_grace: int = 3600
    """The ``gc_grace_seconds`` below which a data table is refused."""


AS_DESIGNED = SchemaLimits()


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done to a keyspace: nothing, in all starts but the first."""

    statements: tuple[str, ...] = ()
    """The changes of the schema that were sent."""
    migrations: tuple[int, ...] = ()
    """The steps that the version has passed."""
    fresh: bool = False
    """Whether none of the tables was there, so that no migration was needed."""


def create_journal(
    session: Session, pipeline: str, journal: JournalDeclaration, limits: SchemaLimits = AS_DESIGNED
) -> Prepared:
    """Make keyspace and tables where they are missing, and bring those that are there to today's version."""
    return _Setup(session, pipeline, journal, limits).run()


class _Setup:
    """One start in one keyspace."""

    def __init__(
        self, session: Session, pipeline: str, journal: JournalDeclaration, limits: SchemaLimits
    ) -> None:
        self._session, self._pipeline, self._journal, self._limits = session, pipeline, journal, limits
        self._found = Found()
        self._check: Callable[[], None] = lambda: None
        self._sent: list[str] = []

    def run(self) -> Prepared:
        """Do what is left to do."""
        self._found = self._read()
        if not self._plan():
            return Prepared()
        # The lock is kept in the keyspace, so these two are made without it.
        for change in (CreateKeyspace(default_copies(*local_nodes(self._session))), CreateTable("locks")):
            self._make(change)
        if warning := too_few_copies(self._session, self._journal.keyspace):
            events.warning("too few copies", pipeline=self._pipeline, problem=warning)
        with schema_lock(self._session, self._pipeline, self._journal, self._limits.wait) as self._check:
            # Somebody else may have done it while we waited, at a node that ours has not heard of it from.
            self._look_again("agree on the schema before it is changed")
            steps = self._plan()
            self._refuse_lost(steps)  # only here, where no other process is in the middle of making them
            for step in steps:
                self._take(step)
            self._refuse(())
        migrated = tuple(step.version for step in steps if step.change and step.version is not None)
        fresh = any(step.change is None for step in steps)
        done = {"statements": len(self._sent), "migrations": migrated}
        events.info("journal schema made ready", keyspace=self._journal.keyspace, **done)
        return Prepared(tuple(self._sent), migrated, fresh)

    def _plan(self) -> tuple[SchemaStep, ...]:
        steps = plan(self._journal, self._found)
        self._refuse(steps)
        return steps

    def _refuse(self, steps: tuple[SchemaStep, ...]) -> None:
        refuse(self._pipeline, self._journal, self._found, steps, self._limits.shortest_grace)

    def _refuse_lost(self, steps: tuple[SchemaStep, ...]) -> None:
        """Refuse to make tables anew that were dropped with what the pointers of this writer promise."""
        missing = beside_pointers(self._journal, self._found, steps)
        if not missing:
            return
        query = with_consistency(self._journal, f"SELECT topic FROM {qualified(self._journal, 'pointer2')}")
        try:
            topics = {row.topic for row in self._session.execute(query)}
        except FAILURES as error:
            raise self._failed("look for pointers", _said(error)) from error
        if own := sorted(topic for topic in topics if re.search(self._journal.namespaces, topic)):
            place = (self._pipeline, self._journal.name, self._journal.keyspace)
            raise TablesLost(*place, missing, own[0])

    def _take(self, step: SchemaStep) -> None:
        if step.change:
            self._make(step.change, step.version)
        if step.version is not None:
            self._write_version(step.version)

    def _make(self, change: SchemaChange, migration: int | None = None) -> None:
        """Change the schema, and see that it has changed.

        What counts is what the keyspace shows, not what Cassandra answers: "exists already" and "does not
        exist" are then no errors, an answer that got lost neither, and everything else is one.
        """
        if change.is_done(self._journal, self._found):
            return
        if isinstance(change, DropTable):
            self._save_from(change.name)
        statement, cause = change.statement(self._journal), None
        step = statement if migration is None else f"migration {migration}, {statement}"
        self._check()
        self._sent.append(statement)
        try:
            future = self._session.execute_async(statement, timeout=STEP)
            future.result()
            if not future.is_schema_agreed:
                cause = "the nodes do not agree on the schema"
        except FAILURES as error:
            cause = _said(error)
        self._look_again(step, cause)
        if not change.is_done(self._journal, self._found):
            raise self._failed(step, cause or "Cassandra did nothing about it")

    def _read(self) -> Found:
        return once_usable(lambda: read_keyspace(self._session, self._journal))

    def _look_again(self, step: str, cause: str | None = None) -> None:
        """Wait until all nodes have the same schema, and read it."""
        try:
            self._session.cluster.refresh_keyspace_metadata(self._journal.keyspace)
            self._found = self._read()
        except FAILURES as error:
            raise self._failed(step, cause or _said(error)) from error

    def _write_version(self, version: int) -> None:
        self._check()
        setting, now = qualified(self._journal, "setting"), datetime.now(UTC)
        query = f"INSERT INTO {setting} (key, value, timestamp, origin) VALUES (%s, %s, %s, %s)"
        values = (VERSION_KEY, str(version), now, origin())
        try:
            self._session.execute(with_consistency(self._journal, query), values)
        except FAILURES as error:
            raise self._failed(f"write version {version}", _said(error)) from error

    def _save_from(self, old_table: str) -> None:
        """Keep what is only in a table that is about to be dropped."""
        try:
            if old_table == "pointer":
                self._carry_pointers()
            elif self._has_rows(f"{self._journal.keyspace}.{old_table}") and not self._has_rows(
                qualified(self._journal, "metajournal")
            ):
                # Too many to be moved under a lock that ends after a minute.
                raise SchemaDiffers(
                    self._pipeline,
                    self._journal.keyspace,
                    [f"its heads are all in the old table {old_table}, which would have to be dropped"],
                )
        except FAILURES as error:
            raise self._failed(f"save what is in {old_table}", _said(error)) from error

    def _carry_pointers(self) -> None:
        # Each with the time it was written at: where pointer2 has a newer one, that one stays.
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
        return SchemaStepFailed(self._pipeline, self._journal.keyspace, step, cause)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
