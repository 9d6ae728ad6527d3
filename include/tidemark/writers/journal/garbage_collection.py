"""Settings of Python's garbage collector for work with hundreds of thousands of live objects.

By default the collector traverses all live objects again and again, which takes more than a quarter of the
time of writing a journal. With these settings it traverses only new objects, and seldom. It is not switched
off, so cycles that the Cassandra driver leaves behind are still freed.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 100_000
NEVER = 1_000_000
"""A threshold of collections that is never reached, so that older generations are not traversed."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Within the block, the garbage collector traverses only new objects.

    Restores the thresholds afterwards.
    """
    before = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, NEVER, NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
