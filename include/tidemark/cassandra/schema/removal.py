"""Drops tables, one at a time and under the lock of their keyspace, and checks that they are gone.

Two nodes that create and drop one table at the same moment may disagree about it, so a process that creates
tables waits until these are gone. The table of the lock itself is never dropped: another process may be
waiting for it. Which tables may be dropped is the caller's decision.
"""

from collections.abc import Sequence
from functools import partial

from tidemark.cassandra.driver import Session
from tidemark.cassandra.schema.lock import schema_lock
from tidemark.cassandra.schema.steps import AS_DESIGNED, SchemaLimits, SchemaSteps
from tidemark.cassandra.table import find_table
from tidemark.faults import FaultPoint, reach


def existing(session: Session, keyspace: str, tables: Sequence[str]) -> list[str]:
    """Those of the tables that exist."""
    return [name for name in tables if find_table(session, keyspace, name) is not None]


def drop_tables(
    session: Session,
    pipeline: str,
    keyspace: str,
    tables: Sequence[str],
    locks: str,
    limits: SchemaLimits = AS_DESIGNED,
) -> None:
    """Drop tables, in the given order. Repeating it does nothing.

    ``locks`` is the table that has the keyspace's lock; without it no process of this library uses the
    keyspace, and none is taken.
    """
    if not existing(session, keyspace, tables):
        return
    steps = SchemaSteps(session, pipeline, keyspace)
    if not existing(session, keyspace, [locks]):
        _drop(session, steps, keyspace, tables)
        return
    with schema_lock(session, pipeline, keyspace, locks, limits.wait) as check:
        steps.check = check
        _drop(session, steps, keyspace, tables)


def _drop(session: Session, steps: SchemaSteps, keyspace: str, tables: Sequence[str]) -> None:
    for name in existing(session, keyspace, tables):
        is_gone = partial(_is_gone, session, keyspace, name)
        steps.make(f"DROP TABLE IF EXISTS {keyspace}.{name}", is_gone)
        reach(FaultPoint.TABLE_DROPPED)


def _is_gone(session: Session, keyspace: str, table: str) -> bool:
    return not existing(session, keyspace, [table])
