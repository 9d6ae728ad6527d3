"""Several test processes with the same services: the first who needs them starts them, the last stops them.

Locks of the kernel, because they end with their holder: a process that was killed keeps nobody waiting.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, alone: bool) -> Iterator[None]:
    """Beside others who are not alone, or alone; waits for its turn."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def is_last(path: Path) -> bool:
    """Whether nobody has this lock any more."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
