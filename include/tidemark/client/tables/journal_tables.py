"""A journal's tables in Cassandra: pointer, head and rows. Read-only.

Missing tables mean that nothing was replicated yet; the tail in Kafka then has everything, or ``TailLost`` is
raised. Only the three queries of a read are prepared.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tidemark.cassandra.driver import ConsistencyLevel, PreparedStatement, Session
from tidemark.cassandra.failures import FAILURES
from tidemark.cassandra.session import CassandraUnreachable, connect
from tidemark.client.errors import TablesUnreadable
from tidemark.client.tables.page_size import rows_of_page
from tidemark.connections import CassandraConnection
from tidemark.journal.head import Head
from tidemark.journal.segments import head_segments
from tidemark.journal_tables.heads import head_of
from tidemark.journal_tables.statements import JournalTables, are_there, heads_query, pointer_query
from tidemark.pipeline.model import JournalDeclaration

_COLUMNS = (
    "seq_nr, timestamp, partition, offset, origin, version, meta_record_id, tags, metadata, payload_type, "
    "payload_txt, payload_bin, headers"
)


class _Queries(NamedTuple):
    """The prepared queries of a session."""

    session: Session
    pointer: PreparedStatement
    head: PreparedStatement
    rows: PreparedStatement


class CassandraTables:
    """One topic's tables. The first read connects."""

    def __init__(self, topic: str, connection: CassandraConnection, journal: JournalDeclaration) -> None:
        self._topic, self._connection, self._journal = topic, connection, journal
        self._lock = threading.Lock()
        self._prepared: _Queries | None = None
        self._rows_at_once = rows_of_page(None)

    def pointer(self, key: str, partition: int) -> int | None:
        """See ``ReadableTables.pointer``."""
        with self._asking(key, "the pointer"):
            if (queries := self._queries()) is None:
                return None
            found = queries.session.execute(queries.pointer, (self._topic, partition)).one()
        return None if found is None else int(found.offset)

    def first_pointed(self, key: str, partitions: Collection[int]) -> int | None:
        """See ``Pointers.first_pointed``."""
        with self._asking(key, "the pointers"):
            if self._queries() is None:
                return None
            tables = JournalTables.of(self._session, self._journal)
            made = tables.pointers_made([(self._topic, each) for each in partitions])
        return min(made.values(), default=None)

    def ask_head(self, key: str) -> Callable[[], Head | None]:
        """See ``ReadableTables.ask_head``: today's segment counts before the old one."""
        with self._asking(key, "the head"):
            queries, asked = self._queries(), []
            if queries is not None:
                for segment in head_segments(key):
                    place = (self._topic, segment, [key])
                    asked.append(queries.session.execute_async(queries.head, place))

        def answer() -> Head | None:
            with self._asking(key, "the head"):
                found = [row for each in asked for row in each.result()]
            return head_of(found[0]) if found else None

        return answer

    def rows(self, key: str, segment: int, first: int) -> Iterator[Sequence[Any]]:
        """See ``ReadableTables.rows``; the next page is asked for while this one is looked at."""
        what = f"the rows from event {first} on"
        with self._asking(key, what):
            queries = self._queries()
            if queries is None:  # they were there when the head was read
                raise TablesUnreadable(self._topic, key, what, "the tables do not exist any more")
            query = queries.rows.bind((key, self._topic, segment, first))
            query.fetch_size = self._rows_at_once
            asked = queries.session.execute_async(query)
        while True:
            with self._asking(key, what):
                page = asked.result().current_rows
                if has_more := asked.has_more_pages:
                    asked.start_fetching_next_page()
            self._rows_at_once = rows_of_page(page) if page else self._rows_at_once
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

    @property
    def _session(self) -> Session:
        with self._lock:  # threads that start together must share one session
            return connect(self._connection)

    def _queries(self) -> _Queries | None:
        """The queries, prepared once for each session; None where the tables do not exist."""
        session, journal = self._session, self._journal
        if not are_there(session, journal):
            return None
        if self._prepared is None or self._prepared.session is not session:
            rows = (
                f"SELECT {_COLUMNS} FROM {journal.keyspace}.{journal.tables.journal} "
                "WHERE id = ? AND topic = ? AND segment = ? AND seq_nr >= ?"
            )
            texts = (pointer_query(journal), heads_query(journal), rows)
            found = [session.prepare(text) for text in texts]
            for statement in found:
                statement.consistency_level = ConsistencyLevel.name_to_value[journal.consistency.value]
                statement.is_idempotent = True
            self._prepared = _Queries(session, *found)
        return self._prepared
