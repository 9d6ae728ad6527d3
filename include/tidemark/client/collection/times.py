"""Times as callers give them: microseconds since 1970, dates with a zone, or either as text."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tidemark.client.collection.errors import BadTime

Time = int | datetime
"""A time: µs since 1970, or a date with a time zone."""

LATEST = 2**63 - 1
"""The latest time that a column of type ``bigint`` holds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros_of(time: Any) -> int:
    """A time in µs; raises ``BadTime``."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise BadTime(time.isoformat(), "it has no time zone")
        time = (time - _EPOCH) // _MICROSECOND
    if not isinstance(time, int) or isinstance(time, bool):
        raise BadTime(time, "it is neither a whole number nor a date")
    if not 0 <= time <= LATEST:
        raise BadTime(time, "it is before 1970, or too large")
    return time


def parse_time(text: str) -> int:
    """A time in µs from text, as an operator writes it; raises ``BadTime``."""
    stripped = text.strip()
    if stripped.removeprefix("-").isdecimal():
        return micros_of(int(stripped))
    try:
        return micros_of(datetime.fromisoformat(stripped))
    except ValueError as error:
        if isinstance(error, BadTime):
            raise
        raise BadTime(text, "it is neither a number nor a date") from None
