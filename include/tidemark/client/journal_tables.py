"""A journal's tables in Cassandra: pointer, head and rows. Read-only.

Missing tables mean that nothing was replicated yet; the tail in Kafka then has everything, or ``TailLost`` is
raised.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tidemark.cassandra.driver import ConsistencyLevel, PreparedStatement, Session
from tidemark.cassandra.session import CassandraUnreachable, connect
from tidemark.client.errors import TablesUnreadable
from tidemark.connections import CassandraConnection
from tidemark.consensus.lightweight import FAILURES
from tidemark.journal.head import Head
from tidemark.journal.segments import head_segments
from tidemark.journal_tables.heads import head_of
from tidemark.journal_tables.statements import JournalTables, are_there
from tidemark.pipeline.model import JournalDeclaration

ROWS_AT_ONCE = 500
"""The page size. A reader holds two pages in memory, and waits for one before its first event."""

_COLUMNS = (
    "seq_nr, timestamp, partition, offset, origin, version, meta_record_id, tags, metadata, payload_type, "
    "payload_txt, payload_bin, headers"
)


class CassandraTables:
    """One topic's tables. The first read connects."""

    def __init__(self, topic: str, connection: CassandraConnection, journal: JournalDeclaration) -> None:
        self._topic, self._connection, self._journal = topic, connection, journal
        self._lock = threading.Lock()
        self._prepared: tuple[Session, PreparedStatement] | None = None

    def pointer(self, key: str, partition: int) -> int | None:
        """See ``ReadableTables.pointer``."""
        place = (self._topic, partition)
        with self._asking(key, "the pointer"):
            tables = self._tables()
            return tables.read_pointers([place]).get(place) if tables else None

    def first_pointed(self, key: str, partitions: Collection[int]) -> int | None:
        """See ``Pointers.first_pointed``."""
        with self._asking(key, "the pointers"):
            tables = self._tables()
            made = tables.pointers_made([(self._topic, each) for each in partitions]) if tables else {}
        return min(made.values(), default=None)

    def head(self, key: str) -> Head | None:
        """See ``ReadableTables.head``: today's segment counts before the old one."""
        segments = head_segments(key)
        with self._asking(key, "the head"):
            tables = self._tables()
            wanted = [(segment, [key]) for segment in segments]
            rows = list(tables.read_heads(self._topic, wanted)) if tables else []
        found = {row.segment: head_of(row) for row in rows}
        return next((found[segment] for segment in segments if segment in found), None)

    def rows(self, key: str, segment: int, first: int) -> Iterator[Sequence[Any]]:
        """See ``ReadableTables.rows``; the next page is asked for while this one is looked at."""
        what = f"the rows from event {first} on"
        with self._asking(key, what):
            asked = self._session.execute_async(self._statement(), (key, self._topic, segment, first))
        while True:
            with self._asking(key, what):
                page = asked.result().current_rows
                if has_more := asked.has_more_pages:
                    asked.start_fetching_next_page()
            yield page
            if not has_more:
                return

    @contextmanager
    def _asking(self, key: str, what: str) -> Iterator[None]:
        try:
            yield
        except (CassandraUnreachable, *FAILURES) as error:
            reason = f"{type(error).__name__}: {error}"
            raise TablesUnreadable(self._topic, key, what, reason) from error

    def _tables(self) -> JournalTables | None:
        is_there = are_there(self._session, self._journal)
        return JournalTables.of(self._session, self._journal) if is_there else None

    @property
    def _session(self) -> Session:
        with self._lock:  # threads that start together must share one session
            return connect(self._connection)

    def _statement(self) -> PreparedStatement:
        session = self._session
        if self._prepared is None or self._prepared[0] is not session:
            statement = session.prepare(
                f"SELECT {_COLUMNS} FROM {self._journal.keyspace}.{self._journal.tables.journal} "
                "WHERE id = ? AND topic = ? AND segment = ? AND seq_nr >= ?"
            )
            statement.consistency_level = ConsistencyLevel.name_to_value[self._journal.consistency.value]
            statement.is_idempotent, statement.fetch_size = True, ROWS_AT_ONCE
            self._prepared = (session, statement)
        return self._prepared[1]
