"""Waiting for a condition instead of for a time."""

import threading
import time
from collections.abc import Callable
from typing import Any

# Limits are written for a quiet machine; a shared one was seen to be three times as slow. A condition that
# comes true costs no more for a longer limit.
SLOWEST_MACHINE = 3


def wait_until(condition: Callable[[], Any], seconds: float = 120, what: str = "the condition") -> Any:
    """The first true value of the condition."""
    seconds *= SLOWEST_MACHINE
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds} s"
        threading.Event().wait(0.1)
    return value
