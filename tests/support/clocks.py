"""Clocks that only a test moves. Nothing here reads the time of the machine."""

from dataclasses import dataclass

from tidemark.clock import SECOND

MORNING = 1_794_909_600_000
"""2026-11-17T10:00:00Z in ms: when the worked examples of the work journal begin."""


@dataclass
class Clock:
    """The time in µs, as the log, deliveries and leases count it."""

    now: int = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


class TickingClock(Clock):
    """Moves on by 0.6 s whenever it is read, so that a resume commits between two messages."""

    tick = SECOND * 6 // 10

    def __call__(self) -> int:
        self.now += self.tick
        return self.now


@dataclass
class WorkClock:
    """The time in ms, as the work journal counts it."""

    now: int = MORNING

    def __call__(self) -> int:
        return self.now

    def to(self, clock: str) -> None:
        """``10:40:11``, on the day of the worked examples."""
        hours, minutes, *seconds = clock.split(":")
        passed = (int(hours) - 10) * 3600 + int(minutes) * 60 + (float(seconds[0]) if seconds else 0)
        self.now = MORNING + round(passed * 1000)


@dataclass
class Seconds:
    """Seconds as a float, as event loops and tokens count them."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now
