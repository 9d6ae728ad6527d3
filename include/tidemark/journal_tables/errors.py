"""Why a journal keyspace cannot be made ready, in the words a person needs to put it right."""

from collections.abc import Sequence
from datetime import datetime

from tidemark.errors import TidemarkError


class JournalTablesError(TidemarkError):
    """The tables of a journal are not as they have to be."""


class SchemaVersionUnknown(JournalTablesError):
    """A newer kafka-journal than the one we know has changed the keyspace."""

    needs_person = True

    def __init__(self, pipeline: str, keyspace: str, found: str, known: int) -> None:
        super().__init__(
            f"{pipeline}: keyspace {keyspace} has schema version {found}, but {known} is the newest that is "
            "known here: writing could break its other users. Nothing was changed or delivered. Upgrade "
            "Tidemark, or name another keyspace."
        )
        self.pipeline, self.keyspace, self.found, self.known = pipeline, keyspace, found, known


class SchemaDiffers(JournalTablesError):
    """Tables of the right names that are not kafka-journal's, or have lost something."""

    needs_person = True

    def __init__(self, pipeline: str, keyspace: str, differences: Sequence[str]) -> None:
        super().__init__(
            f"{pipeline}: keyspace {keyspace} cannot be written as a journal: {'; '.join(differences)}. "
            "Nothing was delivered. Put the tables right, or name another keyspace or other tables."
        )
        self.pipeline, self.keyspace, self.differences = pipeline, keyspace, tuple(differences)


class TablesLost(JournalTablesError):
    """Tables that held data are gone, and pointers still promise it: empty ones would hide that."""

    needs_person = True

    def __init__(self, pipeline: str, writer: str, keyspace: str, tables: Sequence[str], topic: str) -> None:
        missing = " and ".join(f"{keyspace}.{table}" for table in tables)
        super().__init__(
            f"{pipeline}/{writer}: {missing} is missing, although the keyspace has a pointer of {topic}: it "
            "was dropped, and what was delivered into it is gone. It was not made anew, and nothing was "
            "delivered. Restore it with its rows and resume, or rebuild: add a writer with another keyspace "
            "and `start: earliest`, which is filled from the log, and forget this one."
        )
        self.pipeline, self.writer, self.keyspace = pipeline, writer, keyspace
        self.tables, self.topic = tuple(tables), topic


class GraceTooShort(JournalTablesError):
    """What was deleted could come back from a node that was away for longer."""

    needs_person = True

    def __init__(self, pipeline: str, keyspace: str, table: str, seconds: int, shortest: int) -> None:
        super().__init__(
            f"{pipeline}: {keyspace}.{table} has gc_grace_seconds = {seconds}, less than {shortest}: what is "
            "deleted could come back. Nothing was delivered. Set it to what your repairs keep up with: "
            f"ALTER TABLE {keyspace}.{table} WITH gc_grace_seconds = 864000"
        )
        self.pipeline, self.keyspace, self.table = pipeline, keyspace, table
        self.seconds, self.shortest = seconds, shortest


class SchemaStepFailed(JournalTablesError):
    """A step was refused, or nobody knows what became of it. The version has not passed it."""

    def __init__(self, pipeline: str, keyspace: str, step: str, cause: str) -> None:
        super().__init__(
            f"{pipeline}: keyspace {keyspace} could not be made ready at this step: {step}. The cause: "
            f"{cause.rstrip('.')}. Nothing was delivered. Put the cause right and run again: it goes on from "
            "this step."
        )
        self.pipeline, self.keyspace, self.step, self.cause = pipeline, keyspace, step, cause


class SchemaLockHeld(JournalTablesError):
    """Somebody else is changing the schema, or died while doing so."""

    def __init__(
        self, pipeline: str, keyspace: str, holder: str | None, since: datetime | None, waited: float
    ) -> None:
        who = holder or "somebody who left no name"
        when = f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since else ""
        super().__init__(
            f"{pipeline}: {who} has been changing the schema of keyspace {keyspace}{when}; waited "
            f"{waited:g} s for it. Nothing was changed or delivered. Look what is starting there. The lock "
            "of one that died ends by itself within a minute: then run again."
        )
        self.pipeline, self.keyspace, self.holder = pipeline, keyspace, holder
        self.since, self.waited = since, waited


class SchemaLockOverrun(JournalTablesError):
    """The lock ends by itself, and with it the promise that nobody else changes the schema."""

    def __init__(self, pipeline: str, keyspace: str, seconds: float) -> None:
        super().__init__(
            f"{pipeline}: changing the schema of keyspace {keyspace} has taken {seconds:.0f} s, too long for "
            "another step under the same lock. What was done is recorded; nothing was delivered. Run again: "
            "it goes on from here."
        )
        self.pipeline, self.keyspace, self.seconds = pipeline, keyspace, seconds
