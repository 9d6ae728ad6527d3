"""The lock under which the schema of a journal keyspace is changed: kafka-journal's, so that both keep to it.

A row of the table ``locks`` that exists or does not, and ends by itself after a minute. Nothing here takes a
lock away from somebody, and nobody goes on changing the schema when their own may have ended.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog

from tidemark.cassandra.driver import FallthroughRetryPolicy, Session, SimpleStatement
from tidemark.consensus.lightweight import FAILURES, REFUSALS
from tidemark.journal_tables.errors import SchemaLockHeld, SchemaLockOverrun, SchemaStepFailed
from tidemark.journal_tables.schema.layout import qualified
from tidemark.journal_tables.schema.waiting import CLOCK, INTERVAL, Clock, once_usable
from tidemark.pipeline.model import JournalDeclaration

events = structlog.get_logger()

ID = "kafka-journal"
EXPIRY = 60
"""Seconds after which a lock ends that nobody has given back."""
STEP = 30.0
"""Seconds that one step may take: the answer to a statement, and the nodes' agreement."""
LONGEST = EXPIRY - STEP - 5
"""Seconds after which no further step may begin, for it might outlive the lock."""

_this_process = threading.Lock()
"""Threads do not compete in Cassandra: origin and time would not tell them apart."""


def origin() -> str:
    """Who we are, in locks and in the row of the version."""
    return socket.gethostname()


@contextmanager
def schema_lock(
    session: Session, pipeline: str, journal: JournalDeclaration, wait: float, clock: Clock = CLOCK
) -> Iterator[Callable[[], None]]:
    """Hold the lock; what is given is to be called before every step, and refuses it when time is up."""
    if not _this_process.acquire(timeout=wait):
        raise SchemaLockHeld(pipeline, journal.keyspace, f"this process on {origin()}", None, wait)
    try:
        claim = _Claim(session, pipeline, journal, clock)
        try:
            claim.take(wait)
            yield claim.check
        finally:
            claim.release()
    finally:
        _this_process.release()


@dataclass
class _Claim:
    """Our attempts to get the lock, and which of them may have got it."""

    session: Session
    pipeline: str
    journal: JournalDeclaration
    clock: Clock
    sent: dict[datetime, float] = field(default_factory=dict)
    """Those that were applied or had no answer, with the time they were sent at."""
    since: float = 0.0

    def take(self, wait: float) -> None:
        """Get the lock, or say who has it."""
        give_up_at = self.clock.elapsed() + wait
        holder: Any = None
        lost: Exception | None = None
        while True:
            at, stamp = self.clock.elapsed(), self._stamp()
            try:
                answer = self._insert(stamp)
            except FAILURES as error:
                # Refusing this attempt says nothing about an earlier one.
                if not self.sent and isinstance(error, REFUSALS):
                    raise self._failed(error) from error
                self.sent[stamp], lost = at, error
            else:
                if answer.applied:
                    self.sent[stamp] = self.since = at
                    return
                # The row that is in the way may be ours: the answer to an earlier attempt was lost, but the
                # attempt was not. Whatever of it was still under way, this one has settled it.
                if answer.metadata == origin() and answer.timestamp in self.sent:
                    self.since = self.sent[answer.timestamp]
                    return
                holder = answer
            if self.clock.elapsed() >= give_up_at:
                break
            self.clock.pause(INTERVAL)
        if holder is None and lost is not None:
            raise self._failed(lost) from lost
        keyspace = self.journal.keyspace
        raise SchemaLockHeld(self.pipeline, keyspace, holder.metadata, holder.timestamp, wait)

    def check(self) -> None:
        """Refuse a step that might outlive the lock."""
        held = self.clock.elapsed() - self.since
        if held > LONGEST:
            raise SchemaLockOverrun(self.pipeline, self.journal.keyspace, held)

    def release(self) -> None:
        """Give back what is ours, and only that.

        kafka-journal deletes the row if there is one, whoever's it is. Ours may have ended and be another's
        by now, so it is deleted only with our origin and one of our times in it. To kafka-journal that is no
        difference: it asks only whether there is a row, and all statements about it are transactions. What
        the condition cannot tell apart is another process of this host that asked in the same millisecond:
        kafka-journal's row has no room for more.
        """
        if not self.sent:
            return
        times = ", ".join(["%s"] * len(self.sent))
        query = f"WHERE id = %s IF metadata = %s AND timestamp IN ({times})"
        try:
            self._execute(f"DELETE FROM {self._table} {query}", (ID, origin(), *self.sent))
        except FAILURES as error:
            # Not worth failing for, nor for hiding why the work under the lock has failed.
            events.warning(
                "schema lock not given back; it ends by itself", table=self._table, error=str(error)
            )

    @property
    def _table(self) -> str:
        return qualified(self.journal, "locks")

    def _stamp(self) -> datetime:
        """Now, as Cassandra gives it back: milliseconds, without a zone."""
        now = self.clock.now()
        return now.replace(microsecond=now.microsecond // 1000 * 1000, tzinfo=None)

    def _insert(self, stamp: datetime) -> Any:
        columns = "(id, expiry_ms, timestamp, metadata) VALUES (%s, %s, %s, %s)"
        query = f"INSERT INTO {self._table} {columns} IF NOT EXISTS USING TTL {EXPIRY}"
        values = (ID, EXPIRY * 1000, stamp, origin())
        return once_usable(lambda: self._execute(query, values), self.clock)

    def _execute(self, query: str, values: tuple[Any, ...]) -> Any:
        # A second sending by the driver itself would hide what became of the first.
        statement = SimpleStatement(query, retry_policy=FallthroughRetryPolicy())
        return self.session.execute(statement, values).one()

    def _failed(self, error: Exception) -> SchemaStepFailed:
        cause = f"{type(error).__name__}: {error}"
        return SchemaStepFailed(
            self.pipeline, self.journal.keyspace, f"take the lock in {self._table}", cause
        )
