"""The broker of the shared services, stopped for a while."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

from tidemark.embedded.lifecycle import all_records


@contextmanager
def stalled(services: Any) -> Iterator[None]:
    """A broker that is there and does nothing."""
    (broker,) = (record.pid for record in all_records(services.settings) if record.name == "kafka")
    os.kill(broker, signal.SIGSTOP)
    try:
        # On a busy machine its threads go on for a moment, long enough for a small transaction.
        wait_until(lambda: _is_stopped(broker), what="the stop of the broker")
        yield
    finally:
        os.kill(broker, signal.SIGCONT)


def _is_stopped(pid: int) -> bool:
    """Whether every thread of a process is stopped."""
    states = (
        task.read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{pid}/task").glob("*/stat")
    )
    return all(state == "T" for state in states)
