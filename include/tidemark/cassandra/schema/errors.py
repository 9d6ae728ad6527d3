"""Errors of changing a keyspace's schema, each with what an operator can do about it."""

from datetime import datetime

from tidemark.cassandra.errors import CassandraError
from tidemark.errors import with_fields


@with_fields
class GraceTooShort(CassandraError):
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
class SchemaStepFailed(CassandraError):
    """A schema step was refused, or its outcome is unknown."""

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
class SchemaLockHeld(CassandraError):
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
class SchemaLockOverrun(CassandraError):
    """The lock may expire before the next step is finished, and another process could take it."""

    pipeline: str
    keyspace: str
    seconds: float

    text = (
        "{pipeline}: changing the schema of keyspace {keyspace} has taken {seconds:.0f} s, too long for "
        "another step under the same lock. What was done is recorded; nothing was delivered. Run again: it "
        "goes on from here."
    )
