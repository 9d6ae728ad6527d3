"""Scans a table, or parts of it, to Arrow: pages of several parts are in flight, each prefetched.

Every part is read to its end or the scan fails: a failed page is retried a few times, from where the last one
ended, and then the error names the part. Restrictions on clustering columns are applied by the server; a
range for which it times out is split in two. Rows of different parts have no order. A caller that stops early
just drops the iterator.
"""

import heapq
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue

import pyarrow as pa
from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.metadata import protect_name
from cassandra.query import PreparedStatement

from tidemark.cassandra.bulk.batch_errors import Retries, RetryDecision, describe, judge
from tidemark.cassandra.errors import CassandraError
from tidemark.cassandra.scan.clustering import Restriction
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.partition_keys import KeyGroup, PartitionKey
from tidemark.cassandra.scan.raw_pages import Page, RawSession, Row, raw_session
from tidemark.cassandra.table import quoted
from tidemark.cassandra.token_ranges import TokenRange
from tidemark.errors import with_fields

FIRST_ROWS = 500
"""Rows of the first page, when their size is not known yet."""
PAGE_BYTES = 2_000_000
BATCH_ROWS = 10_000
BATCH_BYTES = 16_000_000

Part = TokenRange | PartitionKey | KeyGroup
_RETRIES = Retries()


@with_fields
class ScanFailed(CassandraError):
    """A part of a table that Cassandra did not give."""

    table: str
    part: str
    attempts: int
    cause: str

    def __str__(self) -> str:
        times = "at the first attempt" if self.attempts == 1 else f"in {self.attempts} attempts"
        return (
            f"{self.table}: {self.part} could not be read {times} ({self.cause}). Nothing of this read "
            "counts. See that Cassandra's nodes are up and not overloaded, then read again; if it timed "
            "out, with smaller pages (spark.cassandra.input.fetch.sizeInRows)."
        )


@dataclass(frozen=True, slots=True)
class ScanSettings:
    """How a scan reads."""

    consistency: int = ConsistencyLevel.LOCAL_QUORUM
    fetch_rows: int = 5_000
    """The most rows of a page; pages of large rows have fewer."""
    in_flight: int = 4
    retries: Retries = _RETRIES


USUAL = ScanSettings()


@dataclass(frozen=True, slots=True)
class Extract:
    """What is read of each partition: the rows that meet restrictions on clustering columns, and of those the
    first ones.

    Attributes:
        restrictions: Applied by the server.
        rows: The most rows of a partition; None for all.
        one_for_each: Columns of the key, from its first on: of the rows with equal values only the first one
            counts. Empty for every row.
    """

    restrictions: tuple[Restriction, ...] = ()
    rows: int | None = None
    one_for_each: tuple[str, ...] = ()

    def clauses(self, is_range: bool) -> str:
        """What follows the conditions of a statement."""
        found = f" GROUP BY {quoted(self.one_for_each)}" if self.one_for_each else ""
        found += f" PER PARTITION LIMIT {self.rows}" if self.rows is not None else ""
        # Cassandra requires it wherever it may skip rows; here it reads a slice of each partition.
        return found + (" ALLOW FILTERING" if self.restrictions and is_range else "")


EVERY_ROW = Extract()


@dataclass(slots=True)
class _Reading:
    """The state of one part."""

    part: Part
    most_rows: int
    page: bytes | None = None
    """The paging state of the next page."""
    failures: int = 0


def scan(
    session: Session,
    selected: Selected,
    parts: Iterable[Part],
    settings: ScanSettings = USUAL,
    restrictions: Sequence[Restriction] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of these parts, in large batches; no batch where there are no rows. Raises ``ScanFailed``."""
    return scan_extract(session, selected, parts, Extract(tuple(restrictions)), settings)


def scan_extract(
    session: Session,
    selected: Selected,
    parts: Iterable[Part],
    extract: Extract,
    settings: ScanSettings = USUAL,
) -> Iterator[pa.RecordBatch]:
    """Some of the rows of each partition of these parts, as ``scan`` returns them."""
    rows: list[Row] = []
    size = 0
    for page in scan_pages(session, selected, parts, extract, settings):
        rows += page.rows
        size += page.size
        if len(rows) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield selected.batch(rows)
            rows, size = [], 0
    if rows:
        yield selected.batch(rows)


def scan_pages(
    session: Session,
    selected: Selected,
    parts: Iterable[Part],
    extract: Extract = EVERY_ROW,
    settings: ScanSettings = USUAL,
) -> Iterator[Page]:
    """Undecoded rows, page by page. The pages of one part come in order. Raises ``ScanFailed``."""
    return _Scan(raw_session(session), selected, parts, settings, extract).pages()


class _Scan:
    """The parts that are left, those in flight, and those waiting for a retry."""

    def __init__(
        self,
        session: RawSession,
        selected: Selected,
        parts: Iterable[Part],
        settings: ScanSettings,
        extract: Extract,
    ) -> None:
        self._session, self._selected, self._settings = session, selected, settings
        self._extract = extract
        self._left = iter(parts)
        self._statements: dict[str, PreparedStatement] = {}
        self._answers: SimpleQueue[tuple[int, Page | None, Exception | None]] = SimpleQueue()
        self._under_way: dict[int, _Reading] = {}
        self._paused: list[tuple[float, int, _Reading]] = []
        """A heap of parts to retry: due time, order, part."""
        self._order = count()
        self._row_bytes = 0.0
        """The average size of a row on the wire, of the last page."""

    def pages(self) -> Iterator[Page]:
        """The pages of all parts, as they arrive."""
        for _ in range(self._settings.in_flight):
            self._begin()
        while self._under_way or self._paused:
            reading, page, error = self._next_answer()
            if page is None:
                self._ask_later(reading, error or RuntimeError("an answer without rows"))
                continue
            reading.failures = 0
            if page.rows:
                self._row_bytes = page.size / len(page.rows)
            # The next page is requested before this one is converted.
            if page.next is None:
                self._begin()
            else:
                reading.page = page.next
                self._ask(reading)
            yield page

    def _begin(self) -> None:
        part = next(self._left, None)
        if part is not None:
            self._ask(_Reading(part, self._settings.fetch_rows))

    def _ask(self, reading: _Reading) -> None:
        part, number = reading.part, next(self._order)
        values = (part.after, part.upto) if isinstance(part, TokenRange) else part.values
        values += tuple(each.value for each in self._extract.restrictions)
        statement, answered = self._statement(part), partial(self._hand_over, number)
        self._under_way[number] = reading
        self._session.ask(statement, values, self._rows(reading), reading.page, answered)

    def _rows(self, reading: _Reading) -> int:
        fitting = PAGE_BYTES / self._row_bytes if self._row_bytes else FIRST_ROWS
        return max(min(reading.most_rows, int(fitting)), 1)

    def _hand_over(self, number: int, page: Page | None, error: Exception | None) -> None:
        """Called by the driver's thread."""
        self._answers.put((number, page, error))

    def _next_answer(self) -> tuple[_Reading, Page | None, Exception | None]:
        while True:
            while self._paused and self._paused[0][0] <= time.monotonic():
                self._ask(heapq.heappop(self._paused)[2])
            pause = max(self._paused[0][0] - time.monotonic(), 0) if self._paused else None
            with suppress(Empty):
                number, page, error = self._answers.get(timeout=pause)
                # The driver may call back twice for one request: rows must not be returned twice.
                if reading := self._under_way.pop(number, None):
                    return reading, page, error

    def _ask_later(self, reading: _Reading, error: Exception) -> None:
        verdict, retries = judge(error), self._settings.retries
        reading.failures += 1
        if verdict not in (RetryDecision.AGAIN, RetryDecision.SLOWER) or reading.failures > retries.most:
            place = (str(self._selected.table), str(reading.part))
            raise ScanFailed(*place, reading.failures, describe(error)) from error
        if verdict is RetryDecision.SLOWER:
            reading.most_rows = max(self._rows(reading) // 2, 1)
        due = time.monotonic() + retries.pause(reading.failures)
        for each in self._narrowed(reading) if verdict is RetryDecision.SLOWER else [reading]:
            heapq.heappush(self._paused, (due, next(self._order), each))

    def _narrowed(self, reading: _Reading) -> list[_Reading]:
        """Split a restricted range: smaller pages do not help where the server skips many rows."""
        part = reading.part
        if not (self._extract.restrictions and isinstance(part, TokenRange) and reading.page is None):
            return [reading]
        return [_Reading(half, reading.most_rows, failures=reading.failures) for half in part.halves()]

    def _statement(self, part: Part) -> PreparedStatement:
        table = self._selected.table
        if isinstance(part, TokenRange):
            key = quoted(table.partition_key)
            where = [f"token({key}) > ? AND token({key}) <= ?"]
        elif isinstance(part, KeyGroup):
            *shared, last = map(protect_name, table.partition_key)
            where = [*(f"{name} = ?" for name in shared), f"{last} IN ?"]
        else:
            where = [f"{quoted([name])} = ?" for name in table.primary_key[: len(part.values)]]
        where += map(str, self._extract.restrictions)
        query = f"SELECT {self._selected.expressions} FROM {table.cql_name} WHERE {' AND '.join(where)}"
        query += self._extract.clauses(isinstance(part, TokenRange))
        if query not in self._statements:
            self._statements[query] = self._session.prepare(query, self._settings.consistency)
        return self._statements[query]
