"""Heads, rows and pointers in a kafka-journal keyspace: the statements, and nothing that decides.

Every write carries its message's write time, so writes may be repeated and may arrive late. A head is
written whole, null where it has nothing; a row leaves out what it has not.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import UNSET_VALUE, PreparedStatement
from cassandra.util import Duration

from tidemark.delivery.pipeline import JournalDeclaration
from tidemark.journal.effect import Effect, Row
from tidemark.journal.expiry import duration
from tidemark.journal.head import Head
from tidemark.journal.segments import head_segments, stored_segment_size

IN_FLIGHT = 64
_DAY = 86_400_000_000_000


class JournalTables:
    """The tables of one journal writer, over one session."""

    def __init__(self, session: Session, journal: JournalDeclaration) -> None:
        self._session = session
        self._consistency = ConsistencyLevel.name_to_value[journal.consistency.value]
        keyspace, tables = journal.keyspace, journal.tables
        rows, heads = f"{keyspace}.{tables.journal}", f"{keyspace}.{tables.metajournal}"
        pointers = f"{keyspace}.{tables.pointer2}"
        columns = Row._fields[:-1]
        self._insert_row = self._prepare(
            f"INSERT INTO {rows} ({', '.join(columns)}) "
            f"VALUES ({', '.join('?' * len(columns))}) USING TIMESTAMP ?"
        )
        self._delete_segment = self._prepare(
            f"DELETE FROM {rows} USING TIMESTAMP ? WHERE id = ? AND topic = ? AND segment = ?"
        )
        self._delete_rows = self._prepare(
            f"DELETE FROM {rows} USING TIMESTAMP ? WHERE id = ? AND topic = ? AND segment = ? AND seq_nr <= ?"
        )
        self._insert_head = self._prepare(
            f"INSERT INTO {heads} (id, topic, segment, partition, offset, segment_size, seq_nr, delete_to, "
            "created, created_date, updated, expire_after, expire_on, record_id, origin) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
        )
        self._delete_head = self._prepare(
            f"DELETE FROM {heads} USING TIMESTAMP ? WHERE topic = ? AND segment = ? AND id = ?"
        )
        self._select_head = self._prepare(
            "SELECT partition, offset, segment_size, seq_nr, delete_to, created, updated, expire_after, "
            f"expire_on, record_id, origin FROM {heads} WHERE topic = ? AND segment = ? AND id = ?"
        )
        self._select_pointer = self._prepare(
            f"SELECT offset FROM {pointers} WHERE topic = ? AND partition = ?"
        )
        self._insert_pointer = self._prepare(
            f"INSERT INTO {pointers} (topic, partition, offset, created, updated) VALUES (?, ?, ?, ?, ?) "
            "USING TIMESTAMP ?"
        )
        self._update_pointer = self._prepare(
            f"UPDATE {pointers} USING TIMESTAMP ? SET offset = ?, updated = ? "
            "WHERE topic = ? AND partition = ?"
        )

    def read_heads(self, topic: str, keys: Sequence[str]) -> dict[str, Head]:
        """The heads of those entities that have one, wherever it is kept."""
        heads: dict[str, Head] = {}
        for place in range(2):
            wanted = [
                (key, segments[place])
                for key in keys
                if key not in heads and len(segments := head_segments(key)) > place
            ]
            found = self._run(self._select_head, [(topic, segment, key) for key, segment in wanted])
            for (key, segment), rows in zip(wanted, found, strict=True):
                if row := rows.one():
                    heads[key] = _head(segment, row)
        return heads

    def write(self, effects: Sequence[Effect]) -> None:
        """Write what folds amount to, in an order that a crash anywhere leaves repeatable."""
        segments, parts = [], []
        for effect in effects:
            for segment, up_to, write_time in effect.tombstones:
                if up_to is None:
                    segments.append((write_time, effect.key, effect.topic, segment))
                else:
                    parts.append((write_time, effect.key, effect.topic, segment, up_to))
        self._run(self._delete_segment, segments)
        self._run(self._delete_rows, parts)
        self._run(self._insert_row, [_row_values(row) for effect in effects for row in effect.rows])
        self._run(
            self._delete_head,
            [
                (effect.head_tombstone.write_time, effect.topic, segment, effect.key)
                for effect in effects
                if effect.head_tombstone
                for segment in effect.head_tombstone.segments
            ],
        )
        self._run(
            self._insert_head,
            [
                _head_values(effect.topic, effect.key, effect.head, effect.write_time)
                for effect in effects
                if effect.head and effect.write_time is not None
            ],
        )

    def read_pointer(self, topic: str, partition: int) -> int | None:
        """The offset up to which a partition is visible; None when nothing is."""
        row = self._session.execute(self._select_pointer, (topic, partition)).one()
        return None if row is None else int(row.offset)

    def write_pointer(self, topic: str, partition: int, offset: int, at: int, write_time: int) -> None:
        """Promise readers that everything up to ``offset`` is visible."""
        moment = _moment(at)
        if self.read_pointer(topic, partition) is None:
            values: tuple[Any, ...] = (topic, partition, offset, moment, moment, write_time)
            self._session.execute(self._insert_pointer, values)
        else:
            self._session.execute(self._update_pointer, (write_time, offset, moment, topic, partition))

    def _prepare(self, query: str) -> PreparedStatement:
        statement = self._session.prepare(query)
        statement.consistency_level = self._consistency
        statement.is_idempotent = True
        return statement

    def _run(self, statement: PreparedStatement, arguments: Iterable[Sequence[Any]]) -> list[Any]:
        found = execute_concurrent_with_args(
            self._session, statement, list(arguments), concurrency=IN_FLIGHT, raise_on_first_error=True
        )
        return [each.result_or_exc for each in found]


def _row_values(row: Row) -> tuple[Any, ...]:
    values: Mapping[str, Any] = row._asdict() | {
        "timestamp": _moment(row.timestamp * 1000),
        "tags": set(row.tags),
        "headers": dict(row.headers),
    }
    return tuple(UNSET_VALUE if value is None else value for value in values.values())


def _head_values(topic: str, key: str, head: Head, write_time: int) -> tuple[Any, ...]:
    after = None if head.expire_after is None else Duration(*duration(head.expire_after))
    return (
        key,
        topic,
        head.segment,
        head.partition,
        head.offset,
        head.segment_size,
        head.seq_nr,
        head.delete_to,
        _moment(head.created * 1000),
        head.created_date,
        _moment(head.updated * 1000),
        after,
        head.expire_on,
        head.record_id,
        head.origin,
        write_time,
    )


def _head(segment: int, row: Any) -> Head:
    after = row.expire_after
    return Head(
        segment,
        row.partition,
        row.offset,
        stored_segment_size(row.segment_size),
        row.seq_nr,
        row.delete_to,
        _milliseconds(row.created),
        _milliseconds(row.updated),
        None if after is None else after.days * _DAY + after.nanoseconds,
        None if row.expire_on is None else row.expire_on.date(),
        row.record_id,
        row.origin,
    )


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds // 1000 / 1000, UTC)


def _milliseconds(moment: datetime | None) -> int:
    return 0 if moment is None else round(moment.replace(tzinfo=UTC).timestamp() * 1000)
