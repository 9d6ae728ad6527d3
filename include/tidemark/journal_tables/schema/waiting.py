"""Waiting for others who change a schema at the same time, by a clock that tests can replace."""

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
"""Seconds after which every node can use the tables that it lists."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, as far as changing a schema is concerned; it never gets into a journal."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    elapsed: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


CLOCK = Clock()


def once_usable(ask: Callable[[], Answer], clock: Clock = CLOCK) -> Answer:
    """The answer to a question about a table that somebody may be creating right now.

    Cassandra lists a new table a moment before it answers for it, and says until then that there is none.
    """
    give_up_at = clock.elapsed() + SETTLED
    while True:
        try:
            return ask()
        except InvalidRequest:
            if clock.elapsed() >= give_up_at:
                raise
        clock.pause(INTERVAL)
