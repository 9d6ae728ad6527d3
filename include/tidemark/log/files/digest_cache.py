"""A cache of verified files, so that a process does not compute the digest of an unchanged file twice.

In memory only, with a bounded number of files. A file is verified again where its size or modification time
has changed, or where it was modified so recently that a further change might not alter its modification time.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

MOST = 10_000
SETTLED = 2_000_000_000
"""In ns: the coarsest resolution of modification times in a file system."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The metadata by which a change of a file is noticed.

    Attributes:
        size: In bytes.
        changed_at: The modification time in ns; None where the file system does not have it.
    """

    size: int
    changed_at: int | None


@dataclass
class VerifiedFiles:
    """The verified files; the most recently used is last, and at most ``most`` are kept."""

    most: int = MOST
    clock: Callable[[], int] = time.time_ns
    _known: OrderedDict[tuple[str, str], FileStamp] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def ensure(self, path: str, digest: str, condition: FileStamp, verify: Callable[[], None]) -> None:
        """Call ``verify``, unless the file was verified with this digest and has not changed since."""
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
"""The cache of this process: deliveries open the same folder repeatedly."""
