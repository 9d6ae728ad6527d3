"""Python's search for cycles, while hundreds of thousands of records are alive.

By default it looks again and again through every object that is still needed: more than a quarter of the time
that a journal's messages take. Here only new objects are looked through, and those seldom. Nothing is turned
off: what the driver leaves in cycles is found.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 100_000
NEVER = 1_000_000
"""So many searches of the new ones never happen: the old ones are left alone."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Look through new objects only while the block works; as it was before when it ends."""
    before = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, NEVER, NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
