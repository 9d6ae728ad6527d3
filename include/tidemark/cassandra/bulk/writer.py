"""Writes many encoded rows to Cassandra, in UNLOGGED BATCHes.

For idempotent statements whose order does not matter, and for no others: batches are retried after an error,
and several are in flight without waiting for each other. A caller that needs an order calls ``flush`` in
between. A writer belongs to one thread; the driver's thread only delivers responses.
"""

import heapq
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from struct import Struct
from types import TracebackType
from typing import Self

from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from tidemark.cassandra.bulk.batch_errors import (
    Allowance,
    BulkFailed,
    Retries,
    RetryDecision,
    describe,
    judge,
)
from tidemark.cassandra.bulk.batch_request import BatchSender
from tidemark.cassandra.bulk.replicas import Replicas, ReplicaSets

MOST_ROWS = 65_535
"""The protocol counts a batch's statements in 16 bits."""

IN_FLIGHT = 16
"""Batches that wait for their answer at the same time."""
IN_FLIGHT_BESIDE = 4
"""The same for work that nothing waits for: every batch in a node's queue delays the requests of others."""

_RETRIES = Retries()
_short = Struct(">H").pack


@dataclass(frozen=True, slots=True, eq=False)
class BulkStatement:
    """A prepared statement with what a batch needs of it."""

    prepared: PreparedStatement
    markers: int
    key_positions: tuple[int, ...]
    """The bind markers of the partition key's columns; empty when some of them are not bound."""
    prefix: bytes = field(init=False, repr=False)
    """The bytes before a row's cells in a batch message."""
    keyspace: str = field(init=False)
    table: str = field(init=False)
    """With its keyspace."""

    def __post_init__(self) -> None:
        query_id, column = self.prepared.query_id, self.prepared.column_metadata[0]
        prefix = b"\x01" + _short(len(query_id)) + query_id + _short(self.markers)
        object.__setattr__(self, "prefix", prefix)
        object.__setattr__(self, "keyspace", column.keyspace_name)
        object.__setattr__(self, "table", f"{column.keyspace_name}.{column.table_name}")

    @classmethod
    def of(cls, prepared: PreparedStatement) -> Self:
        """A statement with the metadata that the server returned when it was prepared."""
        return cls(prepared, len(prepared.column_metadata), tuple(prepared.routing_key_indexes or ()))

    def routing_key(self, cells: bytes) -> bytes | None:
        """The serialized partition key of a row, from which its token is computed."""
        values, start = [], 0
        for _ in range(max(self.key_positions, default=-1) + 1):
            length = max(int.from_bytes(cells[start : start + 4], "big", signed=True), 0)
            start += 4 + length
            values.append(cells[start - length : start])
        key = [values[position] for position in self.key_positions]
        if len(key) < 2:
            return key[0] if key else None
        return b"".join(_short(len(value)) + value + b"\x00" for value in key)


@dataclass(frozen=True, slots=True)
class BulkCounts:
    """What was acknowledged, and the retries that it took."""

    rows: int = 0
    batches: int = 0
    bytes: int = 0
    retries: int = 0


@dataclass(slots=True)
class _Batch:
    """Rows that are sent together."""

    routing: tuple[str, bytes] | None = None
    """Keyspace and routing key of one row, by which the driver chooses the node."""
    rows: list[bytes] = field(default_factory=list)
    statements: list[BulkStatement] = field(default_factory=list)
    size: int = 0
    timestamp: int = 0
    attempts: int = 0

    def halves(self) -> list["_Batch"]:
        middle = len(self.rows) // 2
        return [self._part(slice(middle)), self._part(slice(middle, None))]

    def _part(self, places: slice) -> "_Batch":
        rows = self.rows[places]
        return _Batch(self.routing, rows, self.statements[places], sum(map(len, rows)), self.timestamp)


class BulkWriter:
    """Collects rows into batches and sends them, at most ``in_flight`` at a time; ``add`` blocks above that.

    A batch has at most ``rows`` rows and ``wire_bytes`` bytes; a larger row is sent alone. In a cluster of
    several nodes the rows of a batch have the same replicas. ``check`` is called before every batch, and an
    exception from it ends the writer. After an error nothing more is sent, and the error is raised when all
    batches in flight have been answered.
    """

    def __init__(
        self,
        session: Session,
        consistency: int,
        *,
        in_flight: int = IN_FLIGHT,
        rows: int = 100,
        wire_bytes: int = 30_000,
        check: Callable[[], None] | None = None,
        retries: Retries = _RETRIES,
    ) -> None:
        if not (in_flight > 0 and 0 < rows <= MOST_ROWS and wire_bytes > 0):
            raise ValueError(f"no batches with in_flight={in_flight}, rows={rows}, wire_bytes={wire_bytes}")
        self.counts = BulkCounts()
        self._sender = BatchSender(session, consistency)
        self._rows, self._wire_bytes = rows, wire_bytes
        self._check, self._retries = check, retries
        self._allowance = Allowance(in_flight)
        metadata = session.cluster.metadata
        # A single node is every row's replica: no need to compute tokens.
        self._replicas = ReplicaSets(metadata) if len(metadata.all_hosts()) > 1 else None
        self._gathered: dict[Replicas | None, _Batch] = {}
        self._under_way: dict[int, _Batch] = {}
        self._paused: list[tuple[float, int, _Batch]] = []
        """A heap of batches to retry: due time, order, batch."""
        self._order = count()
        self._answers: SimpleQueue[tuple[int, Exception | None]] = SimpleQueue()
        self._sent = 0
        self._failure: BaseException | None = None

    def add(self, statement: BulkStatement, cells: bytes, routing_key: bytes | None = None) -> None:
        """Add a row: one cell per bind marker, concatenated. Blocks while too many batches are in flight."""
        if self._failure is not None:
            raise self._failure
        replicas = routing = None
        if self._replicas is not None:
            key = statement.routing_key(cells) if routing_key is None else routing_key
            if key is not None:
                routing = (statement.keyspace, key)
                replicas = self._replicas.of(*routing)
        row = statement.prefix + cells
        batch = self._gathered.get(replicas)
        if batch and batch.size + len(row) > self._wire_bytes:
            self._send(replicas)
            batch = None
        if batch is None:
            batch = self._gathered[replicas] = _Batch(routing)
        batch.rows.append(row)
        batch.statements.append(statement)
        batch.size += len(row)
        if len(batch.rows) >= self._rows:
            self._send(replicas)

    def flush(self) -> None:
        """Wait until everything added so far is acknowledged."""
        if self._failure is not None:
            raise self._failure
        for replicas in list(self._gathered):
            self._send(replicas)
        with self._stopping_on_error():
            self._wait(most=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.flush()
        else:
            self._stop(error)

    def _send(self, replicas: Replicas | None) -> None:
        batch = self._gathered.pop(replicas)
        with self._stopping_on_error():
            self._wait()
            batch.timestamp = self._sender.now()
            self._start(batch)

    def _start(self, batch: _Batch) -> None:
        if self._check:
            self._check()
        self._sent += 1
        batch.attempts += 1
        answered = partial(self._hand_over, self._sent)
        statements = {statement.prepared for statement in batch.statements}
        self._sender.send(batch.rows, statements, batch.timestamp, batch.routing, answered)
        self._under_way[self._sent] = batch

    def _hand_over(self, number: int, error: Exception | None) -> None:
        """Called by the driver's thread."""
        self._answers.put((number, error))

    def _wait(self, most: int | None = None) -> None:
        """Wait until at most so many batches are unacknowledged; by default, until one more may be sent."""
        while True:
            while not self._answers.empty():
                self._settle(*self._answers.get())
            while self._paused and self._paused[0][0] <= time.monotonic() and self._has_room():
                self._start(heapq.heappop(self._paused)[2])
            unacknowledged = len(self._under_way) + len(self._paused)
            if unacknowledged <= (self._allowance.now - 1 if most is None else most):
                return
            pause = None
            if self._paused and self._has_room():
                pause = max(self._paused[0][0] - time.monotonic(), 0)
            with suppress(Empty):
                self._settle(*self._answers.get(timeout=pause))

    def _has_room(self) -> bool:
        return len(self._under_way) < self._allowance.now

    def _settle(self, number: int, error: Exception | None) -> None:
        batch = self._under_way.pop(number, None)
        if batch is None:  # the driver may call back twice for one request
            return
        if error is None:
            self._allowance.answered()
            self._count(batch)
            return
        verdict = judge(error)
        if verdict is RetryDecision.SMALLER and len(batch.rows) > 1:
            # Later batches are smaller from the start.
            self._wire_bytes = min(self._wire_bytes, batch.size // 2)
            for half in batch.halves():
                self._send_later(half, pause=0)
        elif verdict in (RetryDecision.AGAIN, RetryDecision.SLOWER) and batch.attempts <= self._retries.most:
            if verdict is RetryDecision.SLOWER:
                self._allowance.overloaded(number, self._sent)
            self.counts = replace(self.counts, retries=self.counts.retries + 1)
            self._send_later(batch, self._retries.pause(batch.attempts))
        else:
            raise _failed(batch, error, verdict) from error

    def _send_later(self, batch: _Batch, pause: float) -> None:
        heapq.heappush(self._paused, (time.monotonic() + pause, next(self._order), batch))

    def _count(self, batch: _Batch) -> None:
        so_far = self.counts
        self.counts = replace(
            so_far,
            rows=so_far.rows + len(batch.rows),
            batches=so_far.batches + 1,
            bytes=so_far.bytes + batch.size,
        )

    @contextmanager
    def _stopping_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._stop(error)
            raise

    def _stop(self, error: BaseException) -> None:
        """Send nothing more, and wait for the batches in flight."""
        if self._failure is None:
            self._failure = error
        self._gathered.clear()
        self._paused.clear()
        while self._under_way:
            number, late = self._answers.get()
            batch = self._under_way.pop(number, None)
            if batch and late is None:
                self._count(batch)


def _failed(batch: _Batch, error: Exception, verdict: RetryDecision) -> BulkFailed:
    tables = tuple(sorted({statement.table for statement in batch.statements}))
    refused = verdict in (RetryDecision.SMALLER, RetryDecision.NEVER)
    return BulkFailed(tables, len(batch.rows), batch.attempts, describe(error), refused)
