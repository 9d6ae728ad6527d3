"""The broker of the shared services, stopped for a while."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidemark.embedded.lifecycle import all_records


@contextmanager
def stalled(services: Any) -> Iterator[None]:
    """A broker that is there and does nothing."""
    (broker,) = (record.pid for record in all_records(services.settings) if record.name == "kafka")
    os.kill(broker, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker, signal.SIGCONT)
