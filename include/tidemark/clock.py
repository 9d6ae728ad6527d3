"""The time, once for the whole library: microseconds since 1970, or milliseconds where times of Kafka or of a
work journal are meant.

A clock decides only which process may write, never what is written. Code that asks for the time takes a
``Clock`` as a parameter, so that tests can set it.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
"""Returns the time: in µs, where nothing else is said."""

SECOND = 1_000_000
"""In µs."""


def wall_clock() -> int:
    """The time now in µs."""
    return time.time_ns() // 1000


def wall_clock_millis() -> int:
    """The time now in ms."""
    return time.time_ns() // 1_000_000


def utc_text(micros: int) -> str:
    """A time in µs as people read it: ``2026-01-31 23:59:59 UTC``."""
    return datetime.fromtimestamp(micros / SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def utc_time_text(micros: int) -> str:
    """The same without the date, for times within the hour."""
    return datetime.fromtimestamp(micros / SECOND, UTC).strftime("%H:%M:%S UTC")
