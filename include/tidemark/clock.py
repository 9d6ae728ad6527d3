"""The clock of the whole library: Unix time in microseconds; in milliseconds for Kafka and work journals.

A clock only decides which process may write, never what is written. Code that needs the time takes a
``Clock`` as a parameter, so that tests can set it.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
"""Returns the current Unix time: in µs, unless the parameter's documentation says ms."""

SECOND = 1_000_000
"""One second in µs."""


def wall_clock() -> int:
    """The current Unix time in µs."""
    return time.time_ns() // 1000


def wall_clock_millis() -> int:
    """The current Unix time in ms."""
    return time.time_ns() // 1_000_000


def utc_text(micros: int) -> str:
    """A Unix time in µs as text: ``2026-01-31 23:59:59 UTC``."""
    return datetime.fromtimestamp(micros / SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def utc_time_text(micros: int) -> str:
    """A Unix time in µs as text without the date: ``23:59:59 UTC``."""
    return datetime.fromtimestamp(micros / SECOND, UTC).strftime("%H:%M:%S UTC")
