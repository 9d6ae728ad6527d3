"""What tests of expiry share: a death at a point."""

from collections.abc import Callable

import pytest
from tests.support.expiry_world import Killed

from tidemark.faults import FaultPoint


@pytest.fixture
def kill_at(at_point) -> Callable[[FaultPoint], None]:
    """Die when a point is reached for the first time."""

    def die() -> None:
        raise Killed

    return lambda point: at_point(point, die)
