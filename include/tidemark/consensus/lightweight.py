"""Consensus on Cassandra's lightweight transactions: keyspace ``tidemark``, one partition per object.

Every transaction writes a new attempt id to the static column ``last_tx``. When the response to a transaction
is lost, a SERIAL read finds out whether it was applied, was not applied (then it is retried) or was preceded
by another process. Reads are SERIAL, except ``recent`` and ``committed``. An outcome that cannot be
determined is reported as ``Undecided``, never guessed.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from tidemark.cassandra.driver import (
    BatchStatement,
    BatchType,
    ConsistencyLevel,
    FallthroughRetryPolicy,
    PreparedStatement,
    Session,
)
from tidemark.cassandra.failures import FAILURES, REFUSALS
from tidemark.consensus.objects import (
    ABSENT,
    AFTER_EVERY_NAME,
    Change,
    ObjectKey,
    ObjectKind,
    Outpaced,
    RowRange,
    Snapshot,
    Undecided,
)

KEYSPACE = "tidemark"
ATTEMPTS = 5

NEVER_TWICE = FallthroughRetryPolicy()
"""A retry by the driver would hide the outcome of the first sending."""

TABLE = "object"

_TABLE = """
CREATE TABLE IF NOT EXISTS {keyspace}.{table} (
    kind text, name text, row text,
    version bigint static, last_tx uuid static,
    body text,
    PRIMARY KEY ((kind, name), row))
"""


def create_schema(
    session: Session,
    replication: Mapping[str, str],
    keyspace: str = KEYSPACE,
    tables: Sequence[str] = (TABLE,),
) -> None:
    """Create a keyspace and its tables of objects where they are missing; the control plane has one table."""
    options = ", ".join(f"'{key}': '{value}'" for key, value in replication.items())
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{{options}}}")
    for table in tables:
        session.execute(_TABLE.format(keyspace=keyspace, table=table))


class LightweightConsensus:
    """``Consensus`` on one table of objects in Cassandra."""

    def __init__(self, session: Session, keyspace: str = KEYSPACE, table: str = TABLE) -> None:
        self._session = session
        table = f"{keyspace}.{table}"
        where = f"FROM {table} WHERE kind = ? AND name = ?"
        self._select = self._prepare_read(f"SELECT row, body, version {where} AND row IN ?")
        self._every = self._prepare_read(f"SELECT row, body, version {where}")
        self._committed = session.prepare(
            f"SELECT name, row, body, version FROM {table} WHERE kind = ? AND name IN ?"
        )
        self._committed.consistency_level = ConsistencyLevel.QUORUM
        self._rows = session.prepare(f"SELECT row, body, version {where} AND row IN ?")
        self._rows.consistency_level = ConsistencyLevel.QUORUM
        self._last = self._prepare_read(
            f"SELECT row, body, version {where} AND row >= ? AND row < ? ORDER BY row DESC LIMIT ?"
        )
        self._first = self._prepare_read(
            f"SELECT row, body, version {where} AND row >= ? AND row < ? ORDER BY row ASC LIMIT ?"
        )
        self._state = self._prepare_read(f"SELECT DISTINCT version, last_tx {where}")
        self._advance = session.prepare(
            f"UPDATE {table} SET version = ?, last_tx = ? WHERE kind = ? AND name = ? IF version = ?"
        )
        # Most changes put one row: without a batch they are cheaper.
        self._put_one = session.prepare(
            f"UPDATE {table} SET version = ?, last_tx = ?, body = ? "
            "WHERE kind = ? AND name = ? AND row = ? IF version = ?"
        )
        self._put_one.consistency_level = ConsistencyLevel.QUORUM
        self._put_one.serial_consistency_level = ConsistencyLevel.SERIAL
        self._put_one.retry_policy = NEVER_TWICE
        self._put = session.prepare(f"INSERT INTO {table} (kind, name, row, body) VALUES (?, ?, ?, ?)")
        self._delete = session.prepare(f"DELETE FROM {table} WHERE kind = ? AND name = ? AND row = ?")
        self._delete_range = session.prepare(
            f"DELETE FROM {table} WHERE kind = ? AND name = ? AND row >= ? AND row < ?"
        )
        self._absent = session.prepare(
            f"DELETE version, last_tx FROM {table} WHERE kind = ? AND name = ? IF version = ?"
        )
        self._names = session.prepare(f"SELECT DISTINCT kind, name FROM {table}")
        # Cassandra allows SERIAL only for reads of one partition. A committed change is at a quorum.
        self._names.consistency_level = ConsistencyLevel.QUORUM

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """See ``Consensus.read``."""
        return self._snapshot(key, self._select, (key.kind, key.name, list(rows)))

    def whole(self, key: ObjectKey) -> Snapshot:
        """See ``Consensus.whole``."""
        found = list(self._session.execute(self._every, (key.kind, key.name)))
        # For an object without rows Cassandra returns one result row, with the static columns alone.
        version = found[0].version if found else None
        rows = {r.row: r.body for r in found if r.row is not None}
        return Snapshot(ABSENT if version is None else version, rows)

    def recent(self, kind: ObjectKind, names: Sequence[str]) -> Mapping[str, Snapshot]:
        """See ``Consensus.recent``: a quorum read does not see the writes of unfinished transactions."""
        versions: dict[str, int] = {}
        rows: dict[str, dict[str, str]] = {}
        for one in self._session.execute(self._committed, (kind, list(names))):
            if one.version is not None:
                versions[one.name] = one.version
                rows.setdefault(one.name, {}).update({} if one.row is None else {one.row: one.body})
        return {name: Snapshot(version, rows[name]) for name, version in versions.items()}

    def committed(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """See ``Consensus.committed``: a commit that has returned is at a quorum, and this is a quorum
        read.
        """
        return self._snapshot(key, self._rows, (key.kind, key.name, list(rows)))

    def scan(
        self,
        key: ObjectKey,
        prefix: str,
        *,
        since: str | None = None,
        before: str | None = None,
        limit: int = 1000,
        first: bool = False,
    ) -> Snapshot:
        """See ``Consensus.scan``."""
        end = prefix + AFTER_EVERY_NAME
        upper = end if before is None else min(before, end)
        lower = prefix if since is None else max(since, prefix)
        if lower >= upper:
            return Snapshot(self._version(key)[0], {})
        statement = self._first if first else self._last
        snapshot = self._snapshot(key, statement, (key.kind, key.name, lower, upper, limit))
        return Snapshot(snapshot.version, dict(sorted(snapshot.rows.items())))

    def names(self, kind: ObjectKind, prefix: str = "") -> list[str]:
        """See ``Consensus.names``. Reads the keys of all objects: each pipeline has only a few."""
        found = self._session.execute(self._names)
        return sorted(one.name for one in found if one.kind == kind and one.name.startswith(prefix))

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        """See ``Consensus.commit``."""
        # A transaction whose response is lost may still be applied at any later time. That does no harm: all
        # attempts have the same condition and a version is never reused, so at most one of them is applied,
        # and none after another process's change. Any of the attempts may be the applied one, not only the
        # last, so all their ids are kept.
        attempts: set[UUID] = set()
        lost: Exception | None = None
        for _ in range(ATTEMPTS):
            attempt = uuid4()
            attempts.add(attempt)
            try:
                if self._is_applied(key, expected, change, attempt):
                    return expected + 1
            except FAILURES as error:
                # A refusal of this attempt says nothing about an earlier one.
                if lost is None and isinstance(error, REFUSALS):
                    raise
                lost = error
            if self._settle(key, expected, change, attempts, doubt=lost is not None):
                return expected + 1
        raise Undecided(key, expected, _reason(lost)) from lost

    def forget(self, key: ObjectKey, expected: int) -> None:
        """See ``Consensus.forget``."""
        lost: Exception | None = None
        for _ in range(ATTEMPTS):
            batch = self._conditional()
            batch.add(self._absent, (key.kind, key.name, expected))
            batch.add(self._delete_range, (key.kind, key.name, "", AFTER_EVERY_NAME))
            try:
                if self._session.execute(batch).was_applied:
                    return
            except FAILURES as error:
                if lost is None and isinstance(error, REFUSALS):
                    raise
                lost = error
            try:
                version, _ = self._version(key)
            except FAILURES as error:
                raise Undecided(key, expected, _reason(error)) from error
            if version == ABSENT and lost is not None:
                return
            if version != expected:
                raise Outpaced(key, expected, version)
        raise Undecided(key, expected, _reason(lost)) from lost

    def _settle(
        self, key: ObjectKey, expected: int, change: Change, attempts: Collection[UUID], *, doubt: bool
    ) -> bool:
        """Whether one of the attempts was applied; False means that a retry is safe.

        Raises ``Outpaced`` where another process's change was applied. ``doubt`` is whether any response was
        lost. Without doubt only the newest transaction is compared: the driver may have sent it twice, so
        that "not applied" was the response to the second sending.
        """
        try:
            version, last = self._version(key)
            if last in attempts:
                return True
            # No attempt is applied yet. If one is applied after this read, the next attempt fails, and the
            # read after that one finds it.
            if doubt and version == expected:
                return False
            # One version further, the newest transaction is another process's and preceded this one. Several
            # versions further, the first of them was this change if its rows are still stored.
            if doubt and version > expected + 1 and self._shows(key, change):
                return True
        except FAILURES as error:
            raise Undecided(key, expected, _reason(error)) from error
        raise Outpaced(key, expected, version)

    def _shows(self, key: ObjectKey, change: Change) -> bool:
        """Whether the stored rows are those of the change; a change that only removes rows proves nothing."""
        if not change.puts:
            return False
        present = self.read(key, [*change.puts, *change.deletes]).rows
        return dict(present) == dict(change.puts) and not any(self._holds(key, r) for r in change.ranges)

    def _holds(self, key: ObjectKey, rows: RowRange) -> bool:
        """Whether the object has a row in the range."""
        return bool(list(self._session.execute(self._last, (key.kind, key.name, rows.first, rows.end, 1))))

    def _is_applied(self, key: ObjectKey, expected: int, change: Change, attempt: UUID) -> bool:
        known = None if expected == ABSENT else expected
        if len(change.puts) == 1 and not change.deletes and not change.ranges:
            ((row, body),) = change.puts.items()
            values = (expected + 1, attempt, body, key.kind, key.name, row, known)
            return bool(self._session.execute(self._put_one, values).was_applied)
        batch = self._batch(key, expected, known, change, attempt)
        return bool(self._session.execute(batch).was_applied)

    def _batch(
        self, key: ObjectKey, expected: int, known: int | None, change: Change, attempt: UUID
    ) -> BatchStatement:
        batch = self._conditional()
        batch.add(self._advance, (expected + 1, attempt, key.kind, key.name, known))
        for row, body in change.puts.items():
            batch.add(self._put, (key.kind, key.name, row, body))
        for row in change.deletes:
            batch.add(self._delete, (key.kind, key.name, row))
        for rows in change.ranges:
            batch.add(self._delete_range, (key.kind, key.name, rows.first, rows.end))
        return batch

    def _conditional(self) -> BatchStatement:
        return BatchStatement(
            BatchType.LOGGED,
            consistency_level=ConsistencyLevel.QUORUM,
            serial_consistency_level=ConsistencyLevel.SERIAL,
            retry_policy=NEVER_TWICE,
        )

    def _snapshot(self, key: ObjectKey, statement: PreparedStatement, values: tuple[Any, ...]) -> Snapshot:
        found = list(self._session.execute(statement, values))
        if found:
            return Snapshot(found[0].version, {r.row: r.body for r in found})
        # Without a row there is no version in the result. Read the version first and the rows again: rows
        # newer than the version only cost a retry, but a version newer than the rows would allow a commit
        # that has not seen them.
        version, _ = self._version(key)
        found = list(self._session.execute(statement, values))
        return Snapshot(found[0].version if found else version, {r.row: r.body for r in found})

    def _version(self, key: ObjectKey) -> tuple[int, UUID | None]:
        row = self._session.execute(self._state, (key.kind, key.name)).one()
        return (ABSENT, None) if row is None or row.version is None else (row.version, row.last_tx)

    def _prepare_read(self, query: str) -> PreparedStatement:
        statement = self._session.prepare(query)
        statement.consistency_level = ConsistencyLevel.SERIAL
        return statement


def _reason(error: Exception | None) -> str:
    return f"{type(error).__name__}: {error}"
