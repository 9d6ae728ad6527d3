"""The end of what a reader holds: when it is closed, or some time after it was forgotten.

An object that was forgotten is collected in any thread, also in one of the driver's that delivers all answers
and must never wait for one. So what it held is given up in a thread of its own.
"""

import threading
from collections.abc import Callable
from weakref import finalize


class Ending:
    """Ends something once. ``close`` must not refer to ``owner``, which could never be forgotten then."""

    def __init__(self, owner: object, close: Callable[[], object]) -> None:
        self._close = close
        self._forgotten = finalize(owner, _in_a_thread, close)
        # A process that ends leaves its capabilities to their terms: its sessions may be closed already.
        self._forgotten.atexit = False

    @property
    def is_over(self) -> bool:
        """Whether it was ended."""
        return not self._forgotten.alive

    def now(self) -> None:
        """End it, and wait for that. Repeating it changes nothing."""
        if self._forgotten.detach() is not None:
            self._close()


def _in_a_thread(close: Callable[[], object]) -> None:
    threading.Thread(target=close, name="end of a forgotten reader", daemon=True).start()
