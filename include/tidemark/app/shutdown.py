"""Graceful shutdown: SIGTERM asks a delivery or a resume to commit what is done and to stop."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tidemark.errors import TidemarkError, with_fields


@with_fields
class AskedToStop(TidemarkError):
    """A signal has ended work before its end. A retry does the rest."""

    work: str

    text = (
        "{work} was asked to stop, and did before it was done. What is done is kept; a retry does the rest."
    )


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Yields a function: whether SIGTERM or SIGINT has arrived; always False outside the main thread."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()

    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, ask) for number in signals}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
