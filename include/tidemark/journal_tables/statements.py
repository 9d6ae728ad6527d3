"""The CQL statements on the data tables of a kafka-journal keyspace. Decides nothing.

Every write carries its message's write time, so writes can be repeated and can arrive late. A head is written
whole, with nulls. A row's None is left unset.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tidemark.cassandra.bulk.writer import IN_FLIGHT, BulkStatement, BulkWriter
from tidemark.cassandra.driver import (
    ConsistencyLevel,
    PreparedStatement,
    Session,
    execute_concurrent_with_args,
)
from tidemark.journal.effect import Effect, HeadTombstone, Row
from tidemark.journal.head import Head
from tidemark.journal_tables import cells as journal_cells
from tidemark.log.model.binding import TopicPartition
from tidemark.pipeline.model import JournalDeclaration

READS_IN_FLIGHT = 16
HEADS_OF_A_SEGMENT = 32
"""The most heads of one segment that are read with it. A segment with more is dense, and its heads are read
by key: the heads that are not needed must not cost more time and memory than those that are."""

NO_TOPIC = "tidemark probe"
"""A name that no Kafka topic can have."""
SELECTED = (
    "segment, id, partition, offset, segment_size, seq_nr, delete_to, created, updated, expire_after, "
    "expire_on, record_id, origin"
)
_opened: WeakKeyDictionary[Session, dict[tuple[str, ...], "JournalTables"]] = WeakKeyDictionary()


class Pointer(NamedTuple):
    """A row of ``pointer2``."""

    offset: int
    written: int
    """The write timestamp of the offset in microseconds. It tells our pointers from a replicator's."""


def are_there(session: Session, journal: JournalDeclaration) -> bool:
    """Whether the keyspace has the data tables, according to the driver's copy of the schema."""
    keyspace = session.cluster.metadata.keyspaces.get(journal.keyspace)
    needed = {journal.tables.journal, journal.tables.metajournal, journal.tables.pointer2}
    return keyspace is not None and needed <= {*keyspace.tables}


class JournalTables:
    """The tables of one journal writer, over one session."""

    def __init__(self, session: Session, journal: JournalDeclaration) -> None:
        self._session = session
        self._consistency = ConsistencyLevel.name_to_value[journal.consistency.value]
        keyspace, tables = journal.keyspace, journal.tables
        rows, heads = f"{keyspace}.{tables.journal}", f"{keyspace}.{tables.metajournal}"
        pointers = self._pointers = f"{keyspace}.{tables.pointer2}"
        segment = f"DELETE FROM {rows} USING TIMESTAMP ? WHERE id = ? AND topic = ? AND segment = ?"
        self._insert_row = self._bulk_statement(_insert(rows, journal_cells.ROW_COLUMNS))
        self._delete_segment = self._bulk_statement(segment)
        self._delete_rows = self._bulk_statement(f"{segment} AND seq_nr <= ?")
        self._delete_row = self._bulk_statement(f"{segment} AND seq_nr = ? AND timestamp = ?")
        self._insert_head = self._bulk_statement(_insert(heads, journal_cells.HEAD_COLUMNS))
        self._delete_head = self._bulk_statement(
            f"DELETE FROM {heads} USING TIMESTAMP ? WHERE topic = ? AND segment = ? AND id = ?"
        )
        head = f"SELECT {SELECTED} FROM {heads} WHERE topic = ? AND segment"
        self._select_heads = self._prepare(heads_query(journal))
        self._select_segments = self._prepare(f"{head} IN ? PER PARTITION LIMIT {HEADS_OF_A_SEGMENT}")
        self._select_rows = self._prepare(
            f"SELECT segment, seq_nr, timestamp, partition, offset, meta_record_id FROM {rows} "
            "WHERE id = ? AND topic = ? AND segment = ?"
        )
        self._select_pointer = self._prepare(pointer_query(journal))
        self._select_any_head = self._prepare(f"SELECT id FROM {heads} LIMIT 1")
        self._select_any_pointer = self._prepare(f"SELECT topic FROM {pointers} LIMIT 1")
        probes = {
            f"{pointers} USING TIMESTAMP 1 WHERE topic = ? AND partition = ?": (NO_TOPIC, 0),
            f"{heads} USING TIMESTAMP 1 WHERE topic = ? AND segment = ?": (NO_TOPIC, 0),
            f"{rows} USING TIMESTAMP 1 WHERE id = ? AND topic = ? AND segment = ?": (NO_TOPIC, NO_TOPIC, 0),
        }
        self._probes = [(self._prepare(f"DELETE FROM {query}"), place) for query, place in probes.items()]
        self._insert_pointer = self._prepare(
            f"INSERT INTO {pointers} (topic, partition, offset, created, updated) VALUES (?, ?, ?, ?, ?) "
            "USING TIMESTAMP ?"
        )
        self._update_pointer = self._prepare(
            f"UPDATE {pointers} USING TIMESTAMP ? SET offset = ?, updated = ? "
            "WHERE topic = ? AND partition = ?"
        )

    @classmethod
    def of(cls, session: Session, journal: JournalDeclaration) -> "JournalTables":
        """The tables over a session, prepared once per session because a batch can be a single message."""
        key = (journal.keyspace, journal.consistency.value, *dict(journal.tables).values())
        opened = _opened.setdefault(session, {})
        if key not in opened:
            opened[key] = cls(session, journal)
        return opened[key]

    def bulk(self, check: Callable[[], None] | None = None, in_flight: int = IN_FLIGHT) -> BulkWriter:
        """A bulk writer for the ``add_`` methods; it calls ``check`` before every batch of writes."""
        return BulkWriter(self._session, self._consistency, check=check, in_flight=in_flight)

    def add_tombstones(self, bulk: BulkWriter, effects: Iterable[Effect]) -> bool:
        """Adds the tombstones of these effects and returns whether there were any."""
        found = False
        for effect in effects:
            for segment, up_to, write_time in effect.tombstones:
                found = True
                place = (effect.topic, effect.key, segment, up_to, write_time)
                statement = self._delete_segment if up_to is None else self._delete_rows
                bulk.add(statement, journal_cells.segment_tombstone_cells(*place))
        return found

    def encode_rows(self, rows: Iterable[Row]) -> list[bytes]:
        """Encodes rows for ``add_rows``."""
        return list(map(journal_cells.row_cells, rows))

    def add_rows(self, bulk: BulkWriter, rows: Iterable[bytes]) -> None:
        """Adds encoded rows."""
        statement, add = self._insert_row, bulk.add
        for row in rows:
            add(statement, row)

    def remove_rows(self, rows: Iterable[Row]) -> None:
        """Deletes single rows at their own write times, and waits for the writes."""
        with self.bulk() as bulk:
            for row in rows:
                bulk.add(self._delete_row, journal_cells.row_tombstone_cells(row))

    def add_head(self, bulk: BulkWriter, topic: str, key: str, head: Head, write_time: int) -> None:
        """Adds a head, written whole."""
        bulk.add(self._insert_head, journal_cells.head_cells(topic, key, head, write_time))

    def add_head_tombstone(self, bulk: BulkWriter, topic: str, key: str, tombstone: HeadTombstone) -> None:
        """Adds the tombstones of an entity's head, one for each segment that can hold it."""
        for segment in tombstone.segments:
            place = (topic, key, segment, tombstone.write_time)
            bulk.add(self._delete_head, journal_cells.head_tombstone_cells(*place))

    def read_segments(self, topic: str, groups: Sequence[Sequence[int]]) -> Iterable[Any]:
        """The heads of whole segments, of each at most ``HEADS_OF_A_SEGMENT``; one query per group."""
        for found in self._run(self._select_segments, [(topic, list(group)) for group in groups]):
            yield from found

    def read_heads(self, topic: str, wanted: Iterable[tuple[int, Sequence[str]]]) -> Iterable[Any]:
        """The heads of these (segment, keys) pairs that exist."""
        for found in self._run(
            self._select_heads, [(topic, segment, list(keys)) for segment, keys in wanted]
        ):
            yield from found

    def has_heads(self) -> bool:
        """Whether the keyspace has any entity, of any topic."""
        return self._session.execute(self._select_any_head).one() is not None

    def has_pointers(self) -> bool:
        """Whether the keyspace has any pointer, of any topic."""
        return self._session.execute(self._select_any_pointer).one() is not None

    def read_rows(self, topic: str, key: str, segments: Iterable[int]) -> Iterator[Any]:
        """The rows of an entity in these segments: their places, sources and incarnations, without
        payloads."""
        for found in self._run(self._select_rows, [(key, topic, segment) for segment in segments]):
            yield from found

    def read_pointers(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets up to which these partitions are visible; partitions without a pointer are left out."""
        return {place: one.offset for place, one in self.read_timed_pointers(places).items()}

    def read_timed_pointers(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, Pointer]:
        """The pointers with their write timestamps; partitions without a pointer are left out."""
        found = self._run(self._select_pointer, places)
        rows = zip(places, (result.one() for result in found), strict=True)
        return {place: Pointer(int(row.offset), int(row.written)) for place, row in rows if row is not None}

    def pointers_made(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The ``created`` times of the pointers, in microseconds; partitions without one are left out."""
        query = f"SELECT created FROM {self._pointers} WHERE topic = ? AND partition = ?"
        found = self._run(self._prepare(query), places)
        rows = zip(places, (result.one() for result in found), strict=True)
        return {
            place: round(row.created.replace(tzinfo=UTC).timestamp() * 1000) * 1000
            for place, row in rows
            if row is not None and row.created is not None
        }

    def try_writing(self) -> None:
        """Probes every data table with a write that no reader can see, at the consistency of real writes."""
        for statement, place in self._probes:
            self._run(statement, [place])

    def write_pointers(self, pointers: Mapping[TopicPartition, tuple[int, int]], at: int) -> None:
        """Moves pointers forward: readers rely on everything up to a pointer being in the tables.

        ``pointers`` has the offset and the write time for each partition, ``at`` is the time for ``created``
        and ``updated`` in microseconds. A pointer that is already at or beyond the offset does not change.
        """
        moment = datetime.fromtimestamp(at // 1000 / 1000, UTC)
        found = self.read_pointers(list(pointers))
        new = [
            (*place, offset, moment, moment, write_time)
            for place, (offset, write_time) in pointers.items()
            if place not in found
        ]
        later = [
            (write_time, offset, moment, *place)
            for place, (offset, write_time) in pointers.items()
            if place in found and found[place] < offset
        ]
        self._run(self._insert_pointer, new)
        self._run(self._update_pointer, later)

    def _prepare(self, query: str) -> PreparedStatement:
        statement = self._session.prepare(query)
        statement.consistency_level = self._consistency
        statement.is_idempotent = True
        return statement

    def _bulk_statement(self, query: str) -> BulkStatement:
        return BulkStatement.of(self._prepare(query))

    def _run(self, statement: PreparedStatement, arguments: Sequence[Sequence[Any]]) -> list[Any]:
        found = execute_concurrent_with_args(
            self._session, statement, arguments, concurrency=READS_IN_FLIGHT, raise_on_first_error=True
        )
        return [each.result_or_exc for each in found]


def heads_query(journal: JournalDeclaration) -> str:
    """The query for the heads of some keys in a segment: (topic, segment, keys)."""
    heads = f"{journal.keyspace}.{journal.tables.metajournal}"
    return f"SELECT {SELECTED} FROM {heads} WHERE topic = ? AND segment = ? AND id IN ?"


def pointer_query(journal: JournalDeclaration) -> str:
    """The query for a partition's pointer and its write timestamp: (topic, partition)."""
    pointers = f"{journal.keyspace}.{journal.tables.pointer2}"
    return f"SELECT offset, WRITETIME(offset) AS written FROM {pointers} WHERE topic = ? AND partition = ?"


def _insert(table: str, columns: Sequence[str]) -> str:
    markers = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({markers}) USING TIMESTAMP ?"
