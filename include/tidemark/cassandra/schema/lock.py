"""The lock for schema changes of a keyspace. It is kafka-journal's lock, so its clients respect it too.

The lock is a row of the table ``locks`` that expires after a minute. A process never takes the lock from
another one, and stops changing the schema before its own lock can have expired.
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
from tidemark.cassandra.failures import FAILURES, REFUSALS
from tidemark.cassandra.schema.errors import SchemaLockHeld, SchemaLockOverrun, SchemaStepFailed
from tidemark.cassandra.schema.waiting import CLOCK, INTERVAL, Clock, once_usable

events = structlog.get_logger()

LOCKS = "locks"
"""The usual name of the table."""
COLUMNS = {"id": "text", "expiry_ms": "bigint", "timestamp": "timestamp", "metadata": "text"}
"""The columns of the table and their types."""
ID_COLUMN = "id"
"""The table's key."""
ID = "kafka-journal"
EXPIRY = 60
"""Seconds until a lock that was not released expires."""
STEP = 30.0
"""The most seconds of one step: the answer to a statement, and the nodes' schema agreement."""
LONGEST = EXPIRY - STEP - 5
"""Seconds for which a lock may have been held when a step begins; a later step could outlast the lock."""

_this_process = threading.Lock()
"""Serializes the threads of a process, because origin and timestamp do not tell them apart in Cassandra."""


def origin() -> str:
    """This host's name, written into locks and into the row of the schema version."""
    return socket.gethostname()


@contextmanager
def schema_lock(
    session: Session, pipeline: str, keyspace: str, table: str, wait: float, clock: Clock = CLOCK
) -> Iterator[Callable[[], None]]:
    """Holds the lock in the table of this name. Yields a check to call before every step.

    The check raises SchemaLockOverrun when time is up. Waits up to ``wait`` seconds for the lock, then raises
    SchemaLockHeld.
    """
    if not _this_process.acquire(timeout=wait):
        raise SchemaLockHeld(pipeline, keyspace, f"this process on {origin()}", None, wait)
    try:
        claim = _Claim(session, pipeline, keyspace, table, clock)
        try:
            claim.take(wait)
            yield claim.check
        finally:
            claim.release()
    finally:
        _this_process.release()


@dataclass
class _Claim:
    """The attempts of this process to insert the lock's row, and which of them may have succeeded."""

    session: Session
    pipeline: str
    keyspace: str
    table: str
    clock: Clock
    sent: dict[datetime, float] = field(default_factory=dict)
    """The timestamps of the attempts that were applied or not answered, with the times they were sent at."""
    since: float = 0.0
    """When the successful attempt was sent, by the monotonic clock."""

    def take(self, wait: float) -> None:
        """Takes the lock, or raises SchemaLockHeld with its holder."""
        give_up_at = self.clock.elapsed() + wait
        holder: Any = None
        lost: Exception | None = None
        while True:
            at, stamp = self.clock.elapsed(), self._stamp()
            try:
                answer = self._insert(stamp)
            except FAILURES as error:
                # A refusal of this attempt does not mean that an earlier one failed.
                if not self.sent and isinstance(error, REFUSALS):
                    raise self._failed(error) from error
                self.sent[stamp], lost = at, error
            else:
                if answer.applied:
                    self.sent[stamp] = self.since = at
                    return
                # The existing row may be ours: an earlier attempt was applied and its answer was lost. If
                # that attempt was still in progress, this transaction has completed it.
                if answer.metadata == origin() and answer.timestamp in self.sent:
                    self.since = self.sent[answer.timestamp]
                    return
                holder = answer
            if self.clock.elapsed() >= give_up_at:
                break
            self.clock.pause(INTERVAL)
        if holder is None and lost is not None:
            raise self._failed(lost) from lost
        raise SchemaLockHeld(self.pipeline, self.keyspace, holder.metadata, holder.timestamp, wait)

    def check(self) -> None:
        """Raises SchemaLockOverrun where the next step could outlast the lock."""
        held = self.clock.elapsed() - self.since
        if held > LONGEST:
            raise SchemaLockOverrun(self.pipeline, self.keyspace, held)

    def release(self) -> None:
        """Releases this process's lock, and no other.

        Our lock may have expired and another process may hold it now. The row is therefore deleted only where
        it has our origin and one of our timestamps. kafka-journal deletes the row unconditionally, and only
        checks whether there is one, so the condition makes no difference to it. All statements on the row are
        transactions. The condition cannot exclude another process of this host that took the lock in the same
        millisecond, because kafka-journal's row has no further column.
        """
        if not self.sent:
            return
        times = ", ".join(["%s"] * len(self.sent))
        query = f"WHERE id = %s IF metadata = %s AND timestamp IN ({times})"
        try:
            self._execute(f"DELETE FROM {self._table} {query}", (ID, origin(), *self.sent))
        except FAILURES as error:
            # The lock expires by itself, and an error here would hide one of the work under the lock.
            events.warning(
                "schema lock not given back; it ends by itself", table=self._table, error=str(error)
            )

    @property
    def _table(self) -> str:
        return f"{self.keyspace}.{self.table}"

    def _stamp(self) -> datetime:
        """The current time as Cassandra returns it: in milliseconds, without a time zone."""
        now = self.clock.now()
        return now.replace(microsecond=now.microsecond // 1000 * 1000, tzinfo=None)

    def _insert(self, stamp: datetime) -> Any:
        columns = "(id, expiry_ms, timestamp, metadata) VALUES (%s, %s, %s, %s)"
        query = f"INSERT INTO {self._table} {columns} IF NOT EXISTS USING TTL {EXPIRY}"
        values = (ID, EXPIRY * 1000, stamp, origin())
        return once_usable(lambda: self._execute(query, values), self.clock)

    def _execute(self, query: str, values: tuple[Any, ...]) -> Any:
        # A retry by the driver would hide whether the first attempt was applied.
        statement = SimpleStatement(query, retry_policy=FallthroughRetryPolicy())
        return self.session.execute(statement, values).one()

    def _failed(self, error: Exception) -> SchemaStepFailed:
        cause = f"{type(error).__name__}: {error}"
        return SchemaStepFailed(self.pipeline, self.keyspace, f"take the lock in {self._table}", cause)
