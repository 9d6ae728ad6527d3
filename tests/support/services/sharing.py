"""Several test processes with the same services: the first who needs them starts them, the last stops them.

Locks of the kernel, because they end with their holder: a process that was killed keeps no other waiting.
"""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def locked(path: Path, *, alone: bool) -> Iterator[None]:
    """Beside others who are not alone, or alone; waits for its turn."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def is_last(path: Path) -> bool:
    """Whether no process has this lock any more."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Turns:
    """Modules beside each other, except those that kill what the others need: they are alone."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None
        self._lock = ExitStack()

    def take(self, module: ModuleType, path: Path) -> None:
        """Go on with a module, or begin with it when it is its turn."""
        if module is not self._module:
            self.give_back()
            self._lock.enter_context(locked(path, alone=getattr(module, "ALONE", False)))
            self._module = module

    def give_back(self) -> None:
        """The module is done."""
        self._lock.close()
        self._module = None
