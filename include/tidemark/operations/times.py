"""Times of operations: RFC 3339 with an offset in, milliseconds inside, UTC out.

What RFC 3339 allows and this refuses: leap seconds, ``24:00``, and offsets without minutes. A time is cut to
milliseconds, never rounded: the same instant written with more digits is the same time. Every time that is
read can be written again, so an instant outside the years 1 to 9999 of UTC is refused.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec

from tidemark.operations.errors import BadOperation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
LATEST = (datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC) - _EPOCH) // _MILLISECOND

_NEVER_ROUNDED = len("2014-11-06T03:04:39.041628Z")
"""The length up to which no text has more than six digits of a second."""
_FURTHER_DIGITS = re.compile(r"(\.[0-9]{3})[0-9]+", re.ASCII)
SECONDS_REMEMBERED = 4_096


def milliseconds(text: str) -> int:
    """The time that a text says, cut to milliseconds; raises ``BadOperation``."""
    try:
        # Further digits are cut first, because the parser rounds them.
        cut = text if len(text) <= _NEVER_ROUNDED else _FURTHER_DIGITS.sub(r"\1", text, count=1)
        found = msgspec.convert(cut, datetime)
    except msgspec.ValidationError:
        raise BadOperation(
            "its `timestamp` is not a time by RFC 3339, such as 2014-11-06T03:04:39.041Z"
        ) from None
    if found.tzinfo is None:
        raise BadOperation("its `timestamp` has no offset; write `Z` for UTC")
    passed = found - _EPOCH
    ms = passed.days * 86_400_000 + passed.seconds * 1_000 + passed.microseconds // 1_000
    if not EARLIEST <= ms <= LATEST:
        raise BadOperation("its `timestamp` is not within the years 1 to 9999 of UTC")
    return ms


def rfc3339(ms: int) -> str:
    """A time in UTC, with three digits for milliseconds."""
    seconds, rest = divmod(ms, 1_000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(SECONDS_REMEMBERED)
def _second(seconds: int) -> str:
    """A second in UTC. Operations that follow each other share one."""
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
