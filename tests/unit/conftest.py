"""What keeps the ring quick and steady: nothing waits for a disk, and nothing is judged by the clock."""

import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tidemark import faults
from tidemark.faults import VARIABLE, FaultPoint

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
def at_point(monkeypatch: pytest.MonkeyPatch) -> Callable[[FaultPoint, Callable[[], object]], None]:
    """Let something happen when a point is reached for the first time."""

    def arm(point: FaultPoint, happen: Callable[[], object]) -> None:
        def die(_: FaultPoint) -> None:
            monkeypatch.delenv(VARIABLE)
            happen()

        monkeypatch.setenv(VARIABLE, point)
        monkeypatch.setattr(faults, "die", die)

    return arm
