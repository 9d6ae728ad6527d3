"""Times in UTC, and the days by which dead letters and history are partitioned."""

from collections.abc import Iterator
from datetime import UTC, datetime

DAY = 86_400_000


def day_of(at: int) -> str:
    """The UTC day of a time in milliseconds, as ``YYYY-MM-DD``."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d")


def days_back(now: int, days: int) -> Iterator[str]:
    """Today and the ``days`` days before it, newest first."""
    return (day_of(now - back * DAY) for back in range(days + 1) if now >= back * DAY)


def moment(at: int) -> datetime:
    """A time in milliseconds as a ``datetime`` in UTC."""
    return datetime.fromtimestamp(at / 1000, UTC)


def iso(at: int) -> str:
    """A time in milliseconds as an ISO 8601 text."""
    return moment(at).isoformat(timespec="milliseconds")
