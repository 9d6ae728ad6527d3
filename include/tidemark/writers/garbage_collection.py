"""Settings of Python's garbage collector for work with hundreds of thousands of live objects.

By default the collector traverses all live objects again and again, which takes more than a quarter of the
time of writing a journal, and a fifth of that of a collection. With these settings it traverses only new
objects, and seldom. It is not switched off, so cycles that the Cassandra driver leaves behind are still
freed.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 100_000
NEVER = 1_000_000
"""A threshold of collections that is never reached, so that older generations are not traversed."""


_lock = threading.Lock()
_blocks = 0
_before = gc.get_threshold()


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Within the block, the garbage collector traverses only new objects.

    Restores the thresholds at the end of the last block of all threads.
    """
    global _blocks, _before
    with _lock:
        if _blocks == 0:
            _before = gc.get_threshold()
            gc.set_threshold(NEW_OBJECTS, NEVER, NEVER)
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0:
                gc.set_threshold(*_before)
