"""Services of the shared home, killed and stalled. A module that does it says ``ALONE = True``."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.waiting import wait_until

from tidemark.embedded.lifecycle import up
from tidemark.embedded.processes import PidFile
from tidemark.settings import Settings

HEAP = "1g"


def kill_9(settings: Settings, program: str) -> None:
    """Kill one process and nothing else, as the kernel does when memory is short."""
    process = PidFile.read(settings.home / "run", program).process()  # type: ignore[union-attr]
    assert process is not None
    process.kill()
    wait_until(lambda: PidFile.read(settings.home / "run", program).process() is None)  # type: ignore[union-attr]


@contextmanager
def killed(services: Any, program: str) -> Iterator[None]:
    """A service that is gone until the end of the block, and is started then."""
    kill_9(services.settings, program)
    try:
        yield
    finally:
        up(services.settings, [program], cassandra_heap=HEAP)


@contextmanager
def silent(services: Any, program: str) -> Iterator[None]:
    """A service that is there and answers nothing."""
    record = PidFile.read(services.settings.home / "run", program)
    assert record is not None
    os.kill(record.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(record.pid, signal.SIGCONT)
