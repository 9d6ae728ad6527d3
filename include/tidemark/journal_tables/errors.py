"""Errors of a journal keyspace and its schema, each with what an operator can do about it."""

from collections.abc import Sequence
from datetime import datetime

from tidemark.errors import TidemarkError, with_fields


class JournalTablesError(TidemarkError):
    """The tables of a journal cannot be used as they are."""


@with_fields
class SchemaVersionUnknown(JournalTablesError):
    """The keyspace has a schema version of a newer kafka-journal."""

    needs_person = True

    pipeline: str
    keyspace: str
    found: str
    known: int

    text = (
        "{pipeline}: keyspace {keyspace} has schema version {found}, but {known} is the newest that is known "
        "here: writing could break its other users. Nothing was changed or delivered. Upgrade Tidemark, or "
        "name another keyspace."
    )


@with_fields
class SchemaDiffers(JournalTablesError):
    """Tables have the expected names, but their columns or keys are not kafka-journal's."""

    needs_person = True

    pipeline: str
    keyspace: str
    differences: Sequence[str]

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: keyspace {self.keyspace} cannot be written as a journal: "
            f"{'; '.join(self.differences)}. Nothing was delivered. Put the tables right, or name another "
            "keyspace or other tables."
        )


@with_fields
class TablesLost(JournalTablesError):
    """Data tables are missing although pointers vouch for their data. Empty ones would hide the loss."""

    needs_person = True

    pipeline: str
    writer: str
    keyspace: str
    tables: Sequence[str]
    topic: str

    def __str__(self) -> str:
        missing = " and ".join(f"{self.keyspace}.{table}" for table in self.tables)
        return (
            f"{self.pipeline}/{self.writer}: {missing} is missing, although the keyspace has a pointer of "
            f"{self.topic}: it was dropped, and what was delivered into it is gone. It was not made anew, "
            "and nothing was delivered. Restore it with its rows and resume, or rebuild: add a writer with "
            "another keyspace and `start: earliest`, which is filled from the log, and forget this one."
        )


@with_fields
class GraceTooShort(JournalTablesError):
    """``gc_grace_seconds`` is too short: a node that was down for longer could bring deleted data back."""

    needs_person = True

    pipeline: str
    keyspace: str
    table: str
    seconds: int
    shortest: int

    text = (
        "{pipeline}: {keyspace}.{table} has gc_grace_seconds = {seconds}, less than {shortest}: what is "
        "deleted could come back. Nothing was delivered. Set it to what your repairs keep up with: ALTER "
        "TABLE {keyspace}.{table} WITH gc_grace_seconds = 864000"
    )


@with_fields
class SchemaStepFailed(JournalTablesError):
    """A schema step was refused, or its outcome is unknown. The stored version is still below it."""

    pipeline: str
    keyspace: str
    step: str
    cause: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: keyspace {self.keyspace} could not be made ready at this step: {self.step}. "
            f"The cause: {self.cause.rstrip('.')}. Nothing was delivered. Put the cause right and run "
            "again: it goes on from this step."
        )


@with_fields
class SchemaLockHeld(JournalTablesError):
    """Another process holds the lock: it is changing the schema, or crashed while it did."""

    pipeline: str
    keyspace: str
    holder: str | None
    since: datetime | None
    waited: float

    def __str__(self) -> str:
        who = self.holder or "a process without a name"
        when = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        return (
            f"{self.pipeline}: {who} has been changing the schema of keyspace {self.keyspace}{when}; "
            f"waited {self.waited:g} s for it. Nothing was changed or delivered. Look what is starting "
            "there. The lock of one that died ends by itself within a minute: then run again."
        )


@with_fields
class SchemaLockOverrun(JournalTablesError):
    """The lock may expire before the next step is finished, and another process could take it."""

    pipeline: str
    keyspace: str
    seconds: float

    text = (
        "{pipeline}: changing the schema of keyspace {keyspace} has taken {seconds:.0f} s, too long for "
        "another step under the same lock. What was done is recorded; nothing was delivered. Run again: it "
        "goes on from here."
    )
