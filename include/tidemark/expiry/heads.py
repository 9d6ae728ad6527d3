"""Reads the heads of a journal for expiry: those that expire on a day, and those of given entities.

The heads of a day come from the index, one query a day because an index supports only equality; the table is
never scanned. To share the work among tasks, each queries its own token ranges. Writes nothing.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import NamedTuple, Protocol

from tidemark.cassandra.driver import ConsistencyLevel, PreparedStatement
from tidemark.cassandra.failures import FAILURES
from tidemark.cassandra.session import CassandraUnreachable, connect
from tidemark.cassandra.token_ranges import TokenRange
from tidemark.errors import with_fields
from tidemark.expiry.errors import ExpiryError
from tidemark.expiry.plan import Expired
from tidemark.journal.head import Head
from tidemark.journal.segments import head_segments
from tidemark.journal_tables.heads import KEYS_AT_ONCE, head_of
from tidemark.journal_tables.statements import SELECTED, JournalTables, are_there
from tidemark.pipeline.model import Pipeline
from tidemark.writers.journal.writer import JournalWriter

HEADS_AT_ONCE = 1_000
"""The heads of one page."""
IN_RANGE = " AND token(topic, segment) > ? AND token(topic, segment) <= ?"


@with_fields
class HeadsUnreadable(ExpiryError):
    """The heads could not be read from Cassandra."""

    pipeline: str
    writer: str
    what: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.writer}: Cassandra did not give {self.what} "
            f"({self.reason.rstrip('.')}). Nothing was sent on account of them. Try again when it answers."
        )


class EntityHead(NamedTuple):
    """A head with its entity."""

    topic: str
    key: str
    head: Head


class ExpiryHeads(Protocol):
    """The source of heads."""

    def expired_on(self, day: date) -> Iterable[EntityHead]:
        """The heads whose ``expire_on`` is that day."""

    def of_entities(self, topic: str, keys: Sequence[str]) -> Mapping[str, Head]:
        """The heads of these entities by key; entities without a head are left out."""


class JournalHeads:
    """``ExpiryHeads`` of one journal writer, in Cassandra."""

    def __init__(self, journal: JournalWriter, ranges: Sequence[TokenRange] | None = None) -> None:
        self._journal = journal
        self._ranges = ranges
        """The token ranges in which the heads of a day are queried; None for the whole ring."""
        self._prepared: PreparedStatement | None = None

    def expired_on(self, day: date) -> Iterator[EntityHead]:
        """See ``ExpiryHeads.expired_on``."""
        with self._asking(f"the heads that expired on {day}"):
            session = connect(self._journal.connection)
            if not are_there(session, self._journal.declared):
                return
            places = [()] if self._ranges is None else [(one.after, one.upto) for one in self._ranges]
            for place in places:
                for row in session.execute(self._statement(), (day, *place)):
                    yield EntityHead(row.topic, row.id, head_of(row))

    def of_entities(self, topic: str, keys: Sequence[str]) -> dict[str, Head]:
        """See ``ExpiryHeads.of_entities``. A head in the current segment space takes precedence."""
        wanted: dict[int, list[str]] = {}
        for key in keys:
            for segment in head_segments(key):
                wanted.setdefault(segment, []).append(key)
        asked = [
            (segment, some[start : start + KEYS_AT_ONCE])
            for segment, some in wanted.items()
            for start in range(0, len(some), KEYS_AT_ONCE)
        ]
        with self._asking(f"the heads of {len(keys)} entities"):
            tables = JournalTables.of(connect(self._journal.connection), self._journal.declared)
            found = {(row.segment, row.id): head_of(row) for row in tables.read_heads(topic, asked)}
        heads = {key: [found.get((segment, key)) for segment in head_segments(key)] for key in keys}
        return {key: next(head for head in some if head) for key, some in heads.items() if any(some)}

    def _statement(self) -> PreparedStatement:
        if self._prepared is None:
            declared = self._journal.declared
            self._prepared = connect(self._journal.connection).prepare(
                f"SELECT topic, {SELECTED} FROM {declared.keyspace}.{declared.tables.metajournal} "
                f"WHERE expire_on = ?{'' if self._ranges is None else IN_RANGE}"
            )
            self._prepared.consistency_level = ConsistencyLevel.name_to_value[declared.consistency.value]
            self._prepared.is_idempotent, self._prepared.fetch_size = True, HEADS_AT_ONCE
        return self._prepared

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        try:
            yield
        except (CassandraUnreachable, *FAILURES) as error:
            reason = f"{type(error).__name__}: {error}"
            raise HeadsUnreadable(self._journal.pipeline, self._journal.name, what, reason) from error


def topics_of(pipeline: Pipeline, namespaces: str, without: Collection[str] = ()) -> Callable[[str], bool]:
    """A predicate: whether a topic's entities belong to this pipeline.

    A keyspace can hold those of others too.

    ``namespaces`` is the writer's pattern; the topics in ``without`` are excluded.
    """
    pattern = re.compile(namespaces)

    def is_ours(topic: str) -> bool:
        return topic not in without and pipeline.source.kafka.reads(topic) and bool(pattern.search(topic))

    return is_ours


def find_expired(
    heads: ExpiryHeads, days: Iterable[date], is_ours: Callable[[str], bool]
) -> Iterator[Expired]:
    """The entities that expired on these days, each once a day. ``is_ours`` selects their topics."""
    for day in days:
        seen = set()
        for topic, key, head in heads.expired_on(day):
            if is_ours(topic) and (topic, key) not in seen:
                seen.add((topic, key))
                yield Expired.of(topic, key, day, head)
