"""Waiting for other processes that change the schema at the same time, with a clock that tests can
replace."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from tidemark.cassandra.driver import InvalidRequest

Answer = TypeVar("Answer")

INTERVAL = 0.1
"""Seconds between two attempts."""
SETTLED = 10.0
"""Seconds after which every node can query the tables that it lists."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock for schema changes. Its times are never written into a journal's data."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    elapsed: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


CLOCK = Clock()


def once_usable(query: Callable[[], Answer], clock: Clock = CLOCK) -> Answer:
    """The result of ``query``, which reads a table that another process may be creating.

    Cassandra lists a new table shortly before it can be queried, and raises InvalidRequest until then. The
    query is retried for up to ``SETTLED`` seconds.
    """
    give_up_at = clock.elapsed() + SETTLED
    while True:
        try:
            return query()
        except InvalidRequest:
            if clock.elapsed() >= give_up_at:
                raise
        clock.pause(INTERVAL)
