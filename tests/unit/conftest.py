"""What keeps the ring quick and steady: nothing waits for a disk, and nothing is judged by the clock."""

import os
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import HealthCheck, settings
from tests.support import faults

from tidemark.faults import FaultPoint

# Two cores may be busy with something else. In CI the same examples every time: new ones are found here.
settings.register_profile(
    "ring",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("ring")


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Nothing here outlives a power cut.
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture
def at_point(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[FaultPoint]]:
    """``at_point(point, happen, time=1)``: call ``happen`` when a point is reached for the nth time."""
    return partial(faults.at_point, monkeypatch)


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[FaultPoint]]:
    """``kill_at(point, time=1)``: crash when a point is reached for the nth time."""
    return partial(faults.kill_at, monkeypatch)
