"""Consensus on Cassandra's lightweight transactions: keyspace ``tidemark``, one partition per object.

Every transaction carries a fresh attempt id in the static column ``last_tx``. When the answer to one is
lost, a SERIAL read settles what became of it: applied, not applied (then it is tried again) or overtaken.
Reads are SERIAL, always.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from cassandra import ConsistencyLevel, OperationTimedOut, Timeout
from cassandra.cluster import NoHostAvailable, Session
from cassandra.protocol import ErrorMessage
from cassandra.query import BatchStatement, BatchType, PreparedStatement

from tidemark.consensus.objects import ABSENT, Change, ObjectKey, Outpaced, Snapshot

KEYSPACE = "tidemark"
ATTEMPTS = 5
RESULT_UNKNOWN = 0x1700
"""Cassandra's own "I do not know whether it was applied", for which the driver has no class."""
AFTER_EVERY_NAME = "\U0010ffff"

_TABLE = """
CREATE TABLE IF NOT EXISTS {keyspace}.object (
    kind text, name text, row text,
    version bigint static, last_tx uuid static,
    body text,
    PRIMARY KEY ((kind, name), row))
"""


def create_schema(session: Session, replication: Mapping[str, str], keyspace: str = KEYSPACE) -> None:
    """Make the control plane's keyspace and table where they are missing."""
    options = ", ".join(f"'{key}': '{value}'" for key, value in replication.items())
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{{options}}}")
    session.execute(_TABLE.format(keyspace=keyspace))


class LightweightConsensus:
    """The contract of ``Consensus`` on Cassandra."""

    def __init__(self, session: Session, keyspace: str = KEYSPACE) -> None:
        self._session = session
        table = f"{keyspace}.object"
        where = f"FROM {table} WHERE kind = ? AND name = ?"
        self._select = self._prepare_read(f"SELECT row, body, version {where} AND row IN ?")
        self._last = self._prepare_read(
            f"SELECT row, body, version {where} AND row >= ? AND row < ? ORDER BY row DESC LIMIT ?"
        )
        self._state = self._prepare_read(f"SELECT DISTINCT version, last_tx {where}")
        self._advance = session.prepare(
            f"UPDATE {table} SET version = ?, last_tx = ? WHERE kind = ? AND name = ? IF version = ?"
        )
        self._put = session.prepare(f"INSERT INTO {table} (kind, name, row, body) VALUES (?, ?, ?, ?)")
        self._delete = session.prepare(f"DELETE FROM {table} WHERE kind = ? AND name = ? AND row = ?")

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """See ``Consensus.read``."""
        return self._snapshot(key, self._select, (key.kind, key.name, list(rows)))

    def scan(self, key: ObjectKey, prefix: str, *, before: str | None = None, limit: int = 1000) -> Snapshot:
        """See ``Consensus.scan``."""
        upper = prefix + AFTER_EVERY_NAME if before is None else before
        snapshot = self._snapshot(key, self._last, (key.kind, key.name, prefix, upper, limit))
        return Snapshot(snapshot.version, dict(sorted(snapshot.rows.items())))

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        """See ``Consensus.commit``."""
        for remaining in reversed(range(ATTEMPTS)):
            attempt = uuid4()
            try:
                result = self._session.execute(self._batch(key, expected, change, attempt))
                if result.was_applied:
                    return expected + 1
                # The driver may have sent it twice, and this be the answer to the second.
                version, last = self._version(key)
                if last == attempt:
                    return expected + 1
                raise Outpaced(key, expected, version)
            except (Timeout, OperationTimedOut, NoHostAvailable, ErrorMessage) as error:
                if isinstance(error, ErrorMessage) and error.code != RESULT_UNKNOWN:
                    raise
                if self._settle(key, expected, change, attempt):
                    return expected + 1
                if not remaining:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _settle(self, key: ObjectKey, expected: int, change: Change, attempt: UUID) -> bool:
        """Whether a transaction whose answer was lost was applied; False means that it may be tried again."""
        version, last = self._version(key)
        if last == attempt:
            return True
        if version == expected:
            return False
        present = self.read(key, [*change.puts, *change.deletes]).rows
        if change.puts and dict(present) == dict(change.puts):
            return True
        raise Outpaced(key, expected, version)

    def _batch(self, key: ObjectKey, expected: int, change: Change, attempt: UUID) -> BatchStatement:
        batch = BatchStatement(
            BatchType.LOGGED,
            consistency_level=ConsistencyLevel.QUORUM,
            serial_consistency_level=ConsistencyLevel.SERIAL,
        )
        known = None if expected == ABSENT else expected
        batch.add(self._advance, (expected + 1, attempt, key.kind, key.name, known))
        for row, body in change.puts.items():
            batch.add(self._put, (key.kind, key.name, row, body))
        for row in change.deletes:
            batch.add(self._delete, (key.kind, key.name, row))
        return batch

    def _snapshot(self, key: ObjectKey, statement: PreparedStatement, values: tuple[Any, ...]) -> Snapshot:
        found = list(self._session.execute(statement, values))
        if found:
            return Snapshot(found[0].version, {r.row: r.body for r in found})
        # No row carries the version. Read it first and the rows again: rows newer than the version only
        # cost a retry, a version newer than the rows would let a commit pass that has not seen them.
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
