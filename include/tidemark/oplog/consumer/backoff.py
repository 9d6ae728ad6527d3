"""How long to wait before the next connection: doubled after every failure, and random.

Random, because all consumers of an agent lose it at the same moment, and should not all come back at once.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

FIRST = 1.0
"""Seconds before the first attempt, unless the stream says otherwise (``retry``)."""
LONGEST = 32.0
LONGEST_ASKED_FOR = 300.0
"""A wait that an agent asks for is honoured up to so many seconds."""


class Backoff:
    """Waits between attempts."""

    def __init__(self, random: Random) -> None:
        """Begins without a failure."""
        self._random = random
        self._first = FIRST
        self.failures = 0
        """Attempts in a row after which the stream said nothing."""

    def ask(self, milliseconds: int) -> None:
        """The stream said how long to wait (``retry``)."""
        self._first = min(milliseconds / 1000, LONGEST_ASKED_FOR)

    def succeeded(self) -> None:
        """The stream said something: the next wait is short again."""
        self.failures = 0

    def failed(self, at_least: float = 0.0) -> float:
        """One more attempt is over. Returns the seconds to wait before the next one.

        Args:
            at_least: What the answer asked for (``Retry-After``).
        """
        longest = max(LONGEST, self._first)
        wait = min(self._first * float(1 << min(self.failures, 16)), longest)
        self.failures += 1
        asked = min(at_least, LONGEST_ASKED_FOR)
        return asked + wait * (0.5 + self._random.random() / 2)


def seconds_to_wait(value: str | None) -> float:
    """What a header ``Retry-After`` asks for; 0 where there is none, or none that makes sense."""
    if value is None:
        return 0.0
    if value.strip().isdigit():
        return float(min(int(value.strip()[:9]), 86_400))
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())
