"""Crashes of a process inside one test process: at a fault point, at its nth time, or before a write.

``Killed`` stands for ``kill -9``. Nothing here ends a real process: the system tests do that, through the
variable ``TIDEMARK_FAULT``.
"""

from collections.abc import Callable
from itertools import count
from typing import NoReturn

import pytest

from tidemark import faults
from tidemark.faults import VARIABLE, FaultPoint


class Killed(BaseException):
    """What ``kill -9`` looks like to a test: no code of the library catches it."""


def kill() -> NoReturn:
    raise Killed


def at_point(
    patch: pytest.MonkeyPatch, point: FaultPoint, happen: Callable[[], object], time: int = 1
) -> list[FaultPoint]:
    """Call ``happen`` when a point is reached for the first, second, … time; then switch the point off.

    Returns a list to which every time is added, so that a test can see whether the point was reached at all.
    """
    reached: list[FaultPoint] = []
    times = count(1)

    def die(at: FaultPoint) -> None:
        reached.append(at)
        if next(times) == time:
            patch.delenv(VARIABLE)
            happen()

    patch.setenv(VARIABLE, point)
    patch.setattr(faults, "die", die)
    return reached


def kill_at(patch: pytest.MonkeyPatch, point: FaultPoint, time: int = 1) -> list[FaultPoint]:
    """Crash when a point is reached for the first, second, … time."""
    return at_point(patch, point, kill, time)
