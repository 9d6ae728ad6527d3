"""The tables that a journal's readers use now: those of its writer's active rendition.

A journal has no times, so a handover only moves its readers to other tables. They ask for the active
rendition every 10 s. A read that has begun goes on with its tables, which are delivered to for some time
after a handover. Old tables give no wrong answer: what they lack is read from Kafka.
"""

import threading
import time
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

import structlog

from tidemark.cassandra.driver import InvalidRequest, Unauthorized
from tidemark.cassandra.failures import FAILURES
from tidemark.cassandra.session import CassandraUnreachable
from tidemark.client.errors import TablesUnreadable
from tidemark.client.table_events import ReadableTables
from tidemark.client.tables.journal_tables import CassandraTables
from tidemark.connections import CassandraConnection
from tidemark.consensus.control_plane import look_at_cluster
from tidemark.pipeline.model import JournalDeclaration, Pipeline
from tidemark.writers.renditions import declaration_of, load_output

ASKED_AGAIN_AFTER = 10.0
"""Seconds for which the answer about the active rendition is used."""

AskActive = Callable[[], JournalDeclaration]
"""The journal as its active rendition was declared, at that rendition's place."""

events = structlog.get_logger()


class UsedTables(NamedTuple):
    """The tables of one read, and the segment size of entities that they do not have yet."""

    tables: ReadableTables
    segment_size: int


class TablesInUse(Protocol):
    """Chooses the tables of a read."""

    def now(self, key: str) -> UsedTables:
        """The tables for a read of an entity that begins now. Raises ``TablesUnreadable``."""


class FixedTables:
    """``TablesInUse`` of a journal that is not declared by a pipeline."""

    def __init__(self, tables: ReadableTables, segment_size: int) -> None:
        self._used = UsedTables(tables, segment_size)

    def now(self, key: str) -> UsedTables:
        """See ``TablesInUse.now``."""
        return self._used


class ActiveTables:
    """``TablesInUse`` in Cassandra. The first read asks; threads may share it.

    Args:
        topic: The journal's topic.
        connection: The cluster of the tables.
        declared: The journal as the pipeline's file declares it.
        ask: Asks for the active rendition; None: always ``declared``.
        clock: Seconds.
    """

    def __init__(
        self,
        topic: str,
        connection: CassandraConnection,
        declared: JournalDeclaration,
        ask: AskActive | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic, self._connection, self._declared = topic, connection, declared
        self._ask, self._clock = ask, clock
        self._lock = threading.Lock()
        self._known: tuple[JournalDeclaration, CassandraTables] | None = None
        self._asked_at = -float("inf")

    def now(self, key: str) -> UsedTables:
        """See ``TablesInUse.now``."""
        declared, tables = self._current(key)
        return UsedTables(tables, declared.segment_size)

    def first_pointed(self, key: str, partitions: Collection[int]) -> int | None:
        """See ``Pointers.first_pointed``."""
        return self._current(key)[1].first_pointed(key, partitions)

    def _current(self, key: str) -> tuple[JournalDeclaration, CassandraTables]:
        with self._lock:
            known = self._known
            if known is not None and self._clock() - self._asked_at < ASKED_AGAIN_AFTER:
                return known
            declared = self._declared if self._ask is None else self._active(key, self._ask)
            if known is None or known[0] != declared:
                known = declared, CassandraTables(self._topic, self._connection, declared)
            self._known, self._asked_at = known, self._clock()
            return known

    def _active(self, key: str, ask: AskActive) -> JournalDeclaration:
        """The active rendition; the one that was used before where there is no answer."""
        try:
            return ask()
        except (Unauthorized, InvalidRequest) as error:  # no permission, or no such table
            self._warn(str(error))
            return self._known[0] if self._known else self._declared
        except (CassandraUnreachable, *FAILURES) as error:
            reason = f"{type(error).__name__}: {error}"
            if self._known is None:
                raise TablesUnreadable(self._topic, key, "the active rendition", reason) from error
            self._warn(reason)
            return self._known[0]

    def _warn(self, reason: str) -> None:
        events.warning("the active rendition of a journal is not known", topic=self._topic, reason=reason)


def ask_active(pipeline: Pipeline, declared: JournalDeclaration, control: CassandraConnection) -> AskActive:
    """Asks the control plane for the active rendition of a journal writer."""

    def ask() -> JournalDeclaration:
        output = load_output(pipeline, look_at_cluster(control), declared.name)
        if output is None:
            return declared
        found = declaration_of(pipeline.name, output.active, declared)
        # A rendition of another kind is not a journal: its readers stay where the file says.
        return found if isinstance(found, JournalDeclaration) else declared

    return ask
