"""``expireAfter``: its text, its length, and the date it leads to.

Read as Scala reads a duration, because the text we write into the ``metadata`` column must be the one the
original would have written. "Now" is a parameter: nothing here knows what time it is.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache

from tidemark.journal.codec.json_text import LONG_MAX, long, shown
from tidemark.journal.errors import Undecodable

_NANOS = {
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "minute": 60_000_000_000,
    "second": 1_000_000_000,
    "millisecond": 1_000_000,
    "microsecond": 1_000,
    "nanosecond": 1,
}
# The first label of a unit has no plural.
_LABELS = {
    "day": "d day",
    "hour": "h hr hour",
    "minute": "m min minute",
    "second": "s sec second",
    "millisecond": "ms milli millisecond",
    "microsecond": "µs micro microsecond",
    "nanosecond": "ns nano nanosecond",
}
_UNITS = {
    label: unit
    for unit, (short, *words) in ((unit, labels.split()) for unit, labels in _LABELS.items())
    for label in (short, *(form for word in words for form in (word, f"{word}s")))
}

_WHOLE = re.compile(r"([+-]?)0*([0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST = len(str(LONG_MAX))
"""Digits that a long can have; Python refuses to read some thousand of them."""
_NOT_JAVA_WHITESPACE = "\x85\xa0\u2007\u202f"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ExpireAfter:
    """A duration with the unit it is written in: 60 seconds and 1 minute are equally long, not equal."""

    length: int
    unit: str

    @property
    def nanos(self) -> int:
        """How long it is, in nanoseconds."""
        return self.length * _NANOS[self.unit]

    @property
    def text(self) -> str:
        """As Scala writes it: ``1 day``, ``30 days``."""
        return f"{self.length} {self.unit}{'' if self.length == 1 else 's'}"

    @classmethod
    def of_nanos(cls, nanos: int) -> "ExpireAfter":
        """In the coarsest unit that is exact."""
        for unit, size in _NANOS.items():
            if nanos % size == 0:
                return _bounded(nanos // size, unit, f"{nanos} nanoseconds")
        raise AssertionError("every number of nanoseconds is a multiple of one")


def read_expire_after(value: object) -> ExpireAfter:
    """The ``expireAfter`` of a payload's metadata: text with a unit, or a number of milliseconds.

    A whole number keeps its unit; any other one is given in the coarsest unit that is exact.
    """
    if isinstance(value, str):
        return _read_text(value)
    length = long(value, "expireAfter")
    return _bounded(length, "millisecond", str(length))


@lru_cache(maxsize=1024)
def _read_text(text: str) -> ExpireAfter:
    compact = "".join(c for c in text if not c.isspace() or c in _NOT_JAVA_WHITESPACE)
    start = len(compact)
    while start and compact[start - 1].isalpha():
        start -= 1
    number, unit = compact[:start], _UNITS.get(compact[start:])
    if unit is None or not _DOUBLE.fullmatch(number):
        raise Undecodable(f"expireAfter {shown(text)} is not a duration")
    if (length := _whole(number)) is not None:
        return _bounded(length, unit, text)
    return ExpireAfter.of_nanos(_rounded(float(number) * _NANOS[unit], text))


def _whole(number: str) -> int | None:
    """A number that is a Java long, which keeps its unit; None for one that Scala reads as a double."""
    found = _WHOLE.fullmatch(number)
    if found is None or len(found[2]) > _LONGEST:
        return None
    length = int(found[1] + found[2])
    return length if -LONG_MAX - 1 <= length <= LONG_MAX else None


def _rounded(nanos: float, text: str) -> int:
    """As Java rounds: half up, and 2^63 still counts as the largest long."""
    if abs(nanos) > 2.0**63:
        raise Undecodable(f"expireAfter {shown(text)} is out of range")
    floor = math.floor(nanos)
    return min(floor + (nanos - floor >= 0.5), LONG_MAX)


def _bounded(length: int, unit: str, text: str) -> ExpireAfter:
    if abs(length * _NANOS[unit]) > LONG_MAX:
        raise Undecodable(f"expireAfter {shown(text)} is out of range")
    return ExpireAfter(length, unit)


def duration(nanos: int) -> tuple[int, int, int]:
    """Months, days and nanoseconds of a CQL duration: whole days, and the rest with the same sign."""
    days, rest = divmod(abs(nanos), _NANOS["day"])
    return (0, days, rest) if nanos >= 0 else (0, -days, -rest)


@lru_cache(maxsize=4096)
def expire_on(bound_at: int, nanos: int, zone: tzinfo) -> date:
    """The date in ``zone`` on which an entity expires that was touched at ``bound_at`` (µs since 1970)."""
    moment = _EPOCH + timedelta(microseconds=bound_at + nanos // 1000)
    return moment.astimezone(zone).date()
