"""``expireAfter``: a duration, its text, and the date on which an entity expires.

Parsed and written as Scala's ``Duration``, so that the ``metadata`` column gets the same text as from
kafka-journal. The current time is a parameter; no clock is read here.
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
# The labels that Scala accepts. The first of each unit has no plural.
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
"""The most digits of a long. Checked first, because ``int`` raises for texts of several thousand digits."""
_NOT_JAVA_WHITESPACE = "\x85\xa0\u2007\u202f"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ExpireAfter:
    """A duration with the unit it is written in: 60 seconds and 1 minute are equally long but not equal."""

    length: int
    unit: str

    @property
    def nanos(self) -> int:
        """The length in nanoseconds."""
        return self.length * _NANOS[self.unit]

    @property
    def text(self) -> str:
        """The text that Scala writes, such as ``1 day`` or ``30 days``."""
        return f"{self.length} {self.unit}{'' if self.length == 1 else 's'}"

    @classmethod
    def of_nanos(cls, nanos: int) -> "ExpireAfter":
        """A duration of so many nanoseconds, in the coarsest unit that is exact."""
        for unit, size in _NANOS.items():
            if nanos % size == 0:
                return _bounded(nanos // size, unit, f"{nanos} nanoseconds")
        raise AssertionError("every number of nanoseconds is a multiple of one")


def read_expire_after(value: object) -> ExpireAfter:
    """The duration of a payload's ``expireAfter``: a text with a unit, or a number of milliseconds.

    A whole number keeps its unit; a fraction is converted to the coarsest unit that is exact. Raises
    Undecodable where the value is not a duration, or longer than 2^63 - 1 nanoseconds.
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
    """The number where it is a Java long; None where Scala would parse it as a double."""
    found = _WHOLE.fullmatch(number)
    if found is None or len(found[2]) > _LONGEST:
        return None
    length = int(found[1] + found[2])
    return length if -LONG_MAX - 1 <= length <= LONG_MAX else None


def _rounded(nanos: float, text: str) -> int:
    """Rounds as Java's ``Math.round``: half up, and 2^63 becomes the largest long."""
    if abs(nanos) > 2.0**63:
        raise Undecodable(f"expireAfter {shown(text)} is out of range")
    floor = math.floor(nanos)
    return min(floor + (nanos - floor >= 0.5), LONG_MAX)


def _bounded(length: int, unit: str, text: str) -> ExpireAfter:
    if abs(length * _NANOS[unit]) > LONG_MAX:
        raise Undecodable(f"expireAfter {shown(text)} is out of range")
    return ExpireAfter(length, unit)


def duration(nanos: int) -> tuple[int, int, int]:
    """The months, days and nanoseconds of a CQL duration: whole days, and a remainder of the same sign."""
    days, rest = divmod(abs(nanos), _NANOS["day"])
    return (0, days, rest) if nanos >= 0 else (0, -days, -rest)


@lru_cache(maxsize=4096)
def expire_on(bound_at: int, nanos: int, zone: tzinfo) -> date:
    """The date, in ``zone``, on which an entity expires.

    ``bound_at`` is the time of its last append's binding in microseconds since 1970, ``nanos`` its
    ``expireAfter`` in nanoseconds.
    """
    moment = _EPOCH + timedelta(microseconds=bound_at + nanos // 1000)
    return moment.astimezone(zone).date()
