"""Consensus on Cassandra over a driver session that loses and delays transactions on command.

Only transactions meet faults: they are what may or may not have been applied. Reads pass as they are.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from cassandra import OperationTimedOut
from cassandra.query import BatchStatement
from tests.support.contracts.flaky_consensus import Arrival, FlakyConsensus

from tidemark.consensus.lightweight import ATTEMPTS, TABLE, LightweightConsensus
from tidemark.consensus.objects import Change, ObjectKey


class FlakySession:
    """A driver's session that hands its transactions to another object for sending."""

    def __init__(self, session: Any, send: Callable[[Callable[[], Any]], Any]) -> None:
        self._session, self._send = session, send

    def prepare(self, query: str) -> Any:
        return self._session.prepare(query)

    def execute(self, statement: Any, *values: Any) -> Any:
        if isinstance(statement, BatchStatement) or " IF " in statement.query_string:
            return self._send(partial(self._session.execute, statement, *values))
        return self._session.execute(statement, *values)


class FlakyLightweight(FlakyConsensus):
    """``LightweightConsensus`` that meets a fault with each attempt of a commit, and looks after it."""

    attempts = ATTEMPTS

    def __init__(self, session: Any, keyspace: str, table: str = TABLE) -> None:
        super().__init__(LightweightConsensus(session, keyspace, table))
        self._session = session
        self._disturbed = LightweightConsensus(FlakySession(session, self._attempt), keyspace, table)
        self._asked: tuple[ObjectKey, int, Change] | None = None

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        self._asked = (key, expected, change)
        return self._disturbed.commit(key, expected, change)

    def forget(self, key: ObjectKey, expected: int) -> None:
        self._asked = (key, expected, Change())
        self._disturbed.forget(key, expected)

    def _attempt(self, execute: Callable[[], Any]) -> Any:
        return self._send(partial(self._deliver, execute, self._asked), no_answer=_timed_out)

    def _deliver(self, execute: Callable[[], Any], asked: tuple[ObjectKey, int, Change]) -> Any:
        result = execute()
        self.arrivals.append(Arrival(*asked, applied=result.was_applied))
        return result


def _timed_out(reason: str) -> Exception:
    return OperationTimedOut({"127.0.0.1": reason}, "127.0.0.1")
