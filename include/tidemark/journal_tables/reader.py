"""Reads given entities from a journal keyspace: heads in both segment spaces, rows of given segments.

Reads with the writer's consistency level, and judges nothing. Keys that are too long for Cassandra are
skipped, because they cannot have rows.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tidemark.cassandra.driver import ConsistencyLevel, InvalidRequest, Session
from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.errors import with_fields
from tidemark.journal.digest import COLUMNS, row_digest
from tidemark.journal.head import Head
from tidemark.journal.segments import head_segments, row_segment
from tidemark.journal.visible import FoundRow, choose_head
from tidemark.journal_tables.cells import is_too_long
from tidemark.journal_tables.errors import JournalTablesError
from tidemark.journal_tables.heads import head_of, milliseconds
from tidemark.journal_tables.statements import READS_IN_FLIGHT, JournalTables
from tidemark.log.model.binding import TopicPartition
from tidemark.pipeline.model import JournalDeclaration

KEYS_AT_ONCE = 50
ROWS_A_PAGE = 1_000
MOST_SEGMENTS = 100_000
"""A head that spans more segments is damaged: only the first and the last one are read."""


@with_fields
class TablesMissing(JournalTablesError):
    """A keyspace does not have the tables of a journal."""

    needs_person = True

    keyspace: str
    reason: str

    def __str__(self) -> str:
        return (
            f"Keyspace {self.keyspace} has no journal that could be read ({self.reason.rstrip('.')}). "
            "Nothing was verified. If it was dropped, rebuild it from the log: see "
            "docs/verification.md."
        )


class FoundTables(Protocol):
    """The tables of a keyspace, read by key."""

    def read_heads(self, topic: str, keys: Sequence[str]) -> Mapping[str, Head]:
        """The heads that a journal's reader would use, by key; entities without a head are left out."""

    def read_rows(self, topic: str, wanted: Iterable[tuple[str, int]]) -> Iterator[tuple[str, FoundRow]]:
        """The rows of these (key, segment) pairs with their keys, in that order, page by page."""

    def read_pointers(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The offsets of the pointers of these partitions; partitions without a pointer are left out."""


class JournalReader:
    """``FoundTables`` in Cassandra."""

    def __init__(self, session: Session, journal: JournalDeclaration) -> None:
        self._session, self._tables = session, JournalTables.of(session, journal)
        self._select = session.prepare(
            f"SELECT segment, seq_nr, timestamp, meta_record_id, {', '.join(COLUMNS)} "
            f"FROM {journal.keyspace}.{journal.tables.journal} WHERE id = ? AND topic = ? AND segment = ?"
        )
        self._select.consistency_level = ConsistencyLevel.name_to_value[journal.consistency.value]
        self._select.is_idempotent = True
        self._select.fetch_size = ROWS_A_PAGE

    @classmethod
    def open(cls, connection: CassandraConnection, journal: JournalDeclaration) -> "JournalReader":
        """The tables of a writer. Raises TablesMissing where the keyspace does not have them."""
        try:
            return cls(connect(connection), journal)
        except InvalidRequest as error:
            raise TablesMissing(journal.keyspace, str(error)) from error

    def read_heads(self, topic: str, keys: Sequence[str]) -> Mapping[str, Head]:
        """See ``FoundTables``."""
        by_segment: dict[int, list[str]] = {}
        for key in keys:
            if is_too_long(topic, key):
                continue
            for segment in head_segments(key):
                by_segment.setdefault(segment, []).append(key)
        wanted = [
            (segment, of[start : start + KEYS_AT_ONCE])
            for segment, of in by_segment.items()
            for start in range(0, len(of), KEYS_AT_ONCE)
        ]
        found: dict[str, dict[int, Head]] = {}
        for row in self._tables.read_heads(topic, wanted):
            head = head_of(row)
            # A damaged head may have nulls in columns that are always written.
            whole = head._replace(
                partition=head.partition or 0, offset=head.offset or 0, seq_nr=head.seq_nr or 0
            )
            found.setdefault(row.id, {})[row.segment] = whole
        chosen = {key: choose_head(key, heads) for key, heads in found.items()}
        return {key: head for key, head in chosen.items() if head is not None}

    def read_rows(self, topic: str, wanted: Iterable[tuple[str, int]]) -> Iterator[tuple[str, FoundRow]]:
        """See ``FoundTables``."""
        queries: deque[tuple[str, Any]] = deque()
        for key, segment in wanted:
            if is_too_long(topic, key):
                continue
            queries.append((key, self._session.execute_async(self._select, (key, topic, segment))))
            if len(queries) >= READS_IN_FLIGHT:
                yield from _found_rows(*queries.popleft())
        for query in queries:
            yield from _found_rows(*query)

    def read_pointers(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``FoundTables``."""
        return self._tables.read_pointers(places)


def _found_rows(key: str, future: Any) -> Iterator[tuple[str, FoundRow]]:
    return ((key, found_row(row)) for row in future.result())


def found_row(row: Any) -> FoundRow:
    """A row of ``journal``, its columns in the order of the reader's SELECT, with the others as a digest."""
    segment, seq_nr, timestamp, meta_record_id, *columns = row
    return FoundRow(segment, seq_nr, milliseconds(timestamp), meta_record_id, row_digest(*columns))


def segments_to_read(expected: Iterable[int], head: Head | None) -> list[int]:
    """The segments to search for an entity's rows.

    These are the expected ones, those its head spans, and one more at either side of each.
    """
    segments = set(expected)
    if head is not None:
        first = row_segment((head.delete_to or 0) + 1, head.segment_size)
        last = row_segment(max(head.seq_nr, 1), head.segment_size)
        if last - first < MOST_SEGMENTS:
            segments.update(range(first, last + 1))
        else:
            segments.update((first, last))
    around = {segment + step for segment in segments for step in (-1, 0, 1)}
    return sorted(segment for segment in around if segment >= 0)
