"""The tables of a work journal's keyspace: objects of consensus, and ``due``, ``dead`` and ``history``.

``due``, ``dead`` and ``history`` are written without compare-and-set. Every cell has the time of its event as
its write time, so writes are idempotent and may come in any order. Rows of ``due`` are deleted with their
bucket, by one partition delete, or by their time to live. No other statement deletes anything.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from tidemark.cassandra.driver import BatchStatement, BatchType, PreparedStatement, Session
from tidemark.cassandra.replication import Copies, default_copies, local_nodes, too_few_copies
from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.consensus.objects import Consensus
from tidemark.work.errors import OldTables
from tidemark.work.model.days import day_of
from tidemark.work.model.declaration import WorkDeclaration, milliseconds
from tidemark.work.model.entry import DeadEntry, Hint, KeptLetter, Run, Seen
from tidemark.work.store.due import HINT_LIFE, Place
from tidemark.work.store.entries import key_hash
from tidemark.work.store.registry import Lane, Registry

_LOG = logging.getLogger(__name__)

ENTRY, BUCKET = "entry", "bucket"
GC_GRACE = 10_800
"""Seconds for which tombstones are kept: Cassandra's default window for hinted handoff."""
MICROSECONDS = 1_000
LARGEST_WRITE, HINT_BYTES = 16 * 1024, 200
"""Bytes of hints in one batch, and of one hint besides its key; Cassandra refuses batches of 50 KiB."""
NAME_EVERY = 60_000
"""Milliseconds after which a priority is added to its bucket's list again, in case the write was lost."""
LONGEST_BUCKET = 31 * 86_400
"""Seconds of a month."""

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS {keyspace}.due (
    journal text, bucket text, shard smallint,
    priority smallint, due_at bigint, hint_id text,
    priorities set<smallint> static,
    key text, at bigint, written bigint, version bigint,
    PRIMARY KEY ((journal, bucket, shard), priority, due_at, hint_id))
""",
    """
CREATE TABLE IF NOT EXISTS {keyspace}.dead (
    journal text, day text, started bigint, key_hash text, version bigint,
    body text, dug_up bigint, seen text,
    PRIMARY KEY ((journal, day), started, key_hash, version))
    WITH CLUSTERING ORDER BY (started DESC, key_hash ASC, version DESC)
""",
    """
CREATE TABLE IF NOT EXISTS {keyspace}.history (
    journal text, day text, started bigint, claim text,
    body text,
    PRIMARY KEY ((journal, day), started, claim))
    WITH CLUSTERING ORDER BY (started DESC, claim ASC)
""",
)
_IN_WINDOWS = (
    "ALTER TABLE {keyspace}.{table} WITH gc_grace_seconds = {grace} AND compaction = "
    "{{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', "
    "'compaction_window_size': '1'}}"
)
_PLAIN_TABLES = ("due", "dead", "history")
SEEN = "seen"
"""A column of ``dead`` that tables of earlier versions get with the next ``tidemark work create``."""

T = TypeVar("T")


def create_tables(session: Session, replication: Mapping[str, str], keyspace: str) -> None:
    """Creates the keyspace, its tables and their columns where they are missing."""
    create_schema(session, replication, keyspace, (ENTRY, BUCKET))
    present = dict(session.cluster.metadata.keyspaces[keyspace].tables)
    for table, statement in zip(_PLAIN_TABLES, _TABLES, strict=True):
        if table not in present:
            session.execute(statement.format(keyspace=keyspace))
            session.execute(_IN_WINDOWS.format(keyspace=keyspace, table=table, grace=GC_GRACE))
    if "dead" in present and SEEN not in present["dead"].columns:
        session.execute(f"ALTER TABLE {keyspace}.dead ADD IF NOT EXISTS {SEEN} text")


def entries_consensus(session: Session, keyspace: str) -> Consensus:
    """Compare-and-set on entries."""
    return LightweightConsensus(session, keyspace, ENTRY)


def registry_consensus(session: Session, keyspace: str) -> Consensus:
    """Compare-and-set on journals and their buckets."""
    return LightweightConsensus(session, keyspace, BUCKET)


class CassandraDue:
    """``Due`` on Cassandra."""

    def __init__(self, session: Session, keyspace: str, journal: str) -> None:
        self._session, self._journal = session, journal
        table = f"{keyspace}.due"
        partition = "journal = ? AND bucket = ? AND shard = ?"
        row = f"{partition} AND priority = ? AND due_at = ? AND hint_id = ?"
        self._put = _prepared(
            session,
            f"UPDATE {table} USING TTL ? AND TIMESTAMP ? SET key = ?, at = ?, written = ?, version = ? "
            f"WHERE {row}",
        )
        self._name_priority = _prepared(
            session,
            f"UPDATE {table} USING TTL ? AND TIMESTAMP ? SET priorities = priorities + ? WHERE {partition}",
        )
        self._named: dict[Lane, int] = {}
        """When this process last added a lane's priority to its bucket's list, in ms."""
        self._priorities = _prepared(
            session, f"SELECT DISTINCT journal, bucket, shard, priorities FROM {table} WHERE {partition}"
        )
        self._page = _prepared(
            session,
            f"SELECT hint_id, due_at, key, at, written, version FROM {table} WHERE {partition} "
            "AND priority = ? AND (due_at, hint_id) > (?, ?) AND (due_at) <= (?) LIMIT ?",
        )
        self._one = _prepared(session, f"SELECT key, priorities FROM {table} WHERE {row}")
        self._dispose = _prepared(session, f"DELETE FROM {table} USING TIMESTAMP ? WHERE {partition}")

    def put(self, *hints: Hint) -> None:
        """See ``Due.put``."""
        for hint in hints:
            self._name(hint)
        for together in _small_parts(hints):
            if len(together) == 1:
                self._session.execute(self._put, self._values(together[0]))
                continue
            # One partition: the batch is one atomic write.
            batch = BatchStatement(BatchType.UNLOGGED)
            batch.is_idempotent = True
            for hint in together:
                batch.add(self._put, self._values(hint))
            self._session.execute(batch)

    def _values(self, hint: Hint) -> tuple[Any, ...]:
        place = (self._journal, hint.bucket, hint.shard, hint.priority, hint.due_at, hint.id)
        cells = (hint.key, hint.at, hint.written, hint.version)
        return (_life(hint), hint.written * MICROSECONDS, *cells, *place)

    def _name(self, hint: Hint) -> None:
        """Adds the hint's priority to its bucket's list, unless that was done recently."""
        lane = (hint.bucket, hint.shard, hint.priority)
        if hint.written - self._named.get(lane, 0) > NAME_EVERY:
            # The list must outlive every hint of the bucket.
            lives, written = _life(hint) + LONGEST_BUCKET, hint.written * MICROSECONDS
            values = (lives, written, {hint.priority}, self._journal, hint.bucket, hint.shard)
            self._session.execute(self._name_priority, values)
            self._named[lane] = hint.written

    def priorities(self, bucket: str, shard: int) -> Sequence[int]:
        """See ``Due.priorities``."""
        row = self._session.execute(self._priorities, (self._journal, bucket, shard)).one()
        return [] if row is None else sorted(row.priorities or ())

    def page(self, lane: Lane, after: Place, until: int, limit: int) -> Sequence[Hint]:
        """See ``Due.page``."""
        bucket, shard, priority = lane
        values = (self._journal, bucket, shard, priority, *after, until, limit)
        return [
            Hint(row.hint_id, row.key, *lane, row.at, row.due_at, row.written, row.version)
            for row in self._session.execute(self._page, values)
        ]

    def holds(self, hint: Hint) -> bool:
        """See ``Due.holds``."""
        place = (self._journal, hint.bucket, hint.shard, hint.priority, hint.due_at, hint.id)
        row = self._session.execute(self._one, place).one()
        return row is not None and hint.priority in (row.priorities or ())

    def dispose(self, bucket: str, shards: Iterable[int], now: int) -> None:
        """See ``Due.dispose``."""
        for shard in shards:
            self._session.execute(self._dispose, (now * MICROSECONDS, self._journal, bucket, shard))
        self._named = {lane: at for lane, at in self._named.items() if lane[0] != bucket}


class CassandraArchive:
    """``Archive`` on Cassandra."""

    def __init__(self, session: Session, keyspace: str, declared: WorkDeclaration) -> None:
        self._session, self._journal = session, declared.name
        self._dead_for = milliseconds(declared.dead_letters) // 1000
        self._history_for = 0 if declared.history is None else milliseconds(declared.history) // 1000
        dead, history = f"{keyspace}.dead", f"{keyspace}.history"
        letter = "journal = ? AND day = ? AND started = ? AND key_hash = ? AND version = ?"
        update = f"UPDATE {dead} USING TTL ? AND TIMESTAMP ? SET {{}} = ? WHERE {letter}"
        self._bury = _prepared(session, update.format("body"))
        self._dig_up = _prepared(session, update.format("dug_up"))
        self._record = _prepared(
            session,
            f"UPDATE {history} USING TTL ? AND TIMESTAMP ? SET body = ? "
            "WHERE journal = ? AND day = ? AND started = ? AND claim = ?",
        )
        day = "WHERE journal = ? AND day = ?"
        self._has_seen = SEEN in session.cluster.metadata.keyspaces[keyspace].tables["dead"].columns
        self._see = _prepared(session, update.format(SEEN)) if self._has_seen else None
        columns = f"started, key_hash, version, body, dug_up{', ' + SEEN if self._has_seen else ''}"
        letters = f"SELECT {columns} FROM {dead} {day}"
        self._letters = _prepared(session, letters)
        self._runs = _prepared(session, f"SELECT claim, body FROM {history} {day}")

    def bury(self, letter: DeadEntry) -> None:
        """See ``Archive.bury``."""
        self._mark(self._bury, letter, letter.died, _text(letter))

    def letters(self, days: Iterable[str]) -> Iterable[KeptLetter]:
        """See ``Archive.letters``."""
        seen: set[tuple[int, str, int]] = set()
        for day in days:
            for row in self._session.execute(self._letters, (self._journal, day)):
                identity = (row.started, row.key_hash, row.version)
                if row.body and row.dug_up is None and identity not in seen:
                    looked_at = row.seen if self._has_seen else None
                    seen_by = None if looked_at is None else _value(looked_at, Seen)
                    yield KeptLetter(_value(row.body, DeadEntry), seen_by)
                seen.add(identity)

    def dig_up(self, letter: DeadEntry, now: int) -> None:
        """See ``Archive.dig_up``."""
        self._mark(self._dig_up, letter, now, now)

    def see(self, letter: DeadEntry, seen: Seen) -> None:
        """See ``Archive.see``."""
        if self._see is None:
            raise OldTables(self._journal)
        self._mark(self._see, letter, seen.at, _text(seen))

    def record(self, run: Run) -> None:
        """See ``Archive.record``."""
        place = (self._journal, day_of(run.ended), run.started, run.token)
        ended = run.ended * MICROSECONDS
        self._session.execute(self._record, (self._history_for, ended, _text(run), *place))

    def runs(self, days: Iterable[str]) -> Iterable[Run]:
        """See ``Archive.runs``."""
        seen: set[str] = set()
        for day in days:
            for row in self._session.execute(self._runs, (self._journal, day)):
                if row.body and row.claim not in seen:
                    yield _value(row.body, Run)
                seen.add(row.claim)

    def _mark(self, statement: PreparedStatement, letter: DeadEntry, at: int, value: Any) -> None:
        place = (day_of(letter.died), letter.started, key_hash(letter.key), letter.version)
        values = (self._dead_for, at * MICROSECONDS, value, self._journal, *place)
        self._session.execute(statement, values)


def _life(hint: Hint) -> int:
    return (hint.due_at - hint.written + HINT_LIFE) // 1000


def _small_parts(hints: Iterable[Hint]) -> Iterator[list[Hint]]:
    """Hints grouped into batches: of one partition each, and within Cassandra's limit."""
    for _, group in groupby(sorted(hints, key=_partition), key=_partition):
        part: list[Hint] = []
        size = 0
        for hint in group:
            size += len(hint.key.encode()) + HINT_BYTES
            if part and size > LARGEST_WRITE:
                yield part
                part, size = [], len(hint.key.encode()) + HINT_BYTES
            part.append(hint)
        yield part


def _partition(hint: Hint) -> tuple[str, int]:
    return (hint.bucket, hint.shard)


def _prepared(session: Session, query: str) -> PreparedStatement:
    statement = session.prepare(query)
    # Every statement has an explicit write time, so a retry changes nothing.
    statement.is_idempotent = True
    return statement


def _text(value: DeadEntry | Run | Seen) -> str:
    return msgspec.json.encode(value).decode()


def _value(body: str, kind: type[T]) -> T:
    return msgspec.json.decode(body, type=kind)


def create_journal(session: Session, declared: WorkDeclaration) -> bool:
    """Creates the journal, or stores its changed declaration; False where nothing changed.

    Logs a warning where the loss of one node would lose entries.
    """
    create_tables(session, copies_of(session, declared).options, declared.keyspace)
    if warning := too_few_copies(session, declared.keyspace):
        _LOG.warning("%s: %s", declared.name, warning)
    registry = Registry(registry_consensus(session, declared.keyspace), declared.name)
    return registry.create(declared)


def copies_of(session: Session, declared: WorkDeclaration) -> Copies:
    """The declared replication; without one, the default for the cluster's size."""
    if declared.replication is None:
        return default_copies(*local_nodes(session))
    return Copies(declared.replication.strategy.value, declared.replication.factors)
