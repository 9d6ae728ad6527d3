"""Sends changes of a keyspace's schema one at a time, and checks what each has done.

The schema decides, not Cassandra's answer: "already exists", "does not exist" and a timeout are no errors
where the change is there afterwards. What to change is the caller's decision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tidemark.cassandra.driver import Session
from tidemark.cassandra.failures import FAILURES
from tidemark.cassandra.schema.errors import SchemaStepFailed
from tidemark.cassandra.schema.lock import STEP

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """Limits that only tests change."""

    wait: float = 60.0
    """Seconds to wait for the lock while another process holds it."""
    shortest_grace: int = 3600
    """The smallest ``gc_grace_seconds`` that is accepted for a data table."""


AS_DESIGNED = SchemaLimits()


class SchemaSteps:
    """The changes of one keyspace that a process makes, with the statements it has sent."""

    def __init__(self, session: Session, pipeline: str, keyspace: str) -> None:
        self.sent: list[str] = []
        self.check: Callable[[], None] = lambda: None
        """Called before every step; raises where the lock could expire meanwhile."""
        self._session, self._pipeline, self._keyspace = session, pipeline, keyspace

    def make(self, statement: str, is_made: Callable[[], bool], step: str | None = None) -> None:
        """Sends a statement. Raises SchemaStepFailed where the schema does not have the change then.

        ``is_made`` reads the schema; ``step`` is the statement's description in errors.
        """
        step, cause = step or statement, None
        self.check()
        self.sent.append(statement)
        try:
            future = self._session.execute_async(statement, timeout=STEP)
            future.result()
            if not future.is_schema_agreed:
                cause = "the nodes do not agree on the schema"
        except FAILURES as error:
            cause = describe(error)
        if not self.reread(is_made, step, cause):
            raise self.failed(step, cause or "Cassandra did nothing about it")

    def reread(self, read: Callable[[], Answer], step: str, cause: str | None = None) -> Answer:
        """Waits until all nodes have the same schema, and reads it."""
        try:
            self._session.cluster.refresh_keyspace_metadata(self._keyspace)
            return read()
        except FAILURES as error:
            raise self.failed(step, cause or describe(error)) from error

    def failed(self, step: str, cause: str) -> SchemaStepFailed:
        """The error of a step."""
        return SchemaStepFailed(self._pipeline, self._keyspace, step, cause)


def describe(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"
