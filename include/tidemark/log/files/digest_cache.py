"""Which files were found to be what was recorded of them, so that nobody reads a file twice to know it.

Remembered in this process only, and only so many. A file that has another size or time of change than when it
was read is read again, and so is one that changed so lately that another change might not show.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

MOST = 10_000
SETTLED = 2_000_000_000
"""ns. File systems tell times of change no finer than this, at worst."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a file system says of a file without reading it."""

    size: int
    changed_at: int | None
    """ns; None where the file system does not say."""


@dataclass
class VerifiedFiles:
    """The files that were verified, the latest last."""

    most: int = MOST
    clock: Callable[[], int] = time.time_ns
    _known: OrderedDict[tuple[str, str], Condition] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def ensure(self, path: str, digest: str, condition: Condition, verify: Callable[[], None]) -> None:
        """Verify a file, unless it was found right in this very condition."""
        with self._lock:
            if self._known.get((path, digest)) == condition:
                self._known.move_to_end((path, digest))
                return
        began = self.clock()
        verify()
        if condition.changed_at is None or condition.changed_at > began - SETTLED:
            return
        with self._lock:
            self._known[path, digest] = condition
            self._known.move_to_end((path, digest))
            while len(self._known) > self.most:
                self._known.popitem(last=False)


VERIFIED = VerifiedFiles()
"""Of this process: deliveries open the same folder again and again, in tasks too."""
