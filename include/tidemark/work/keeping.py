"""Claims kept while their work takes its time: a thread refreshes them, and says which are lost.

Refreshing never brings a lost claim back. Whoever does the work asks ``lost`` before anything that cannot be
undone.
"""

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tidemark.consensus.objects import Undecided
from tidemark.work.client import Work
from tidemark.work.errors import ClaimLost, TooBusy
from tidemark.work.items import WorkItem

THIRDS = 3
"""A claim is refreshed so many times within its limit."""


class KeptClaims:
    """Refreshes claims until they end or this is left."""

    def __init__(self, work: Work, items: Iterable[WorkItem], every: float | None = None) -> None:
        self._work = work
        self._held = {item.token: item for item in items}
        self._lost: dict[str, ClaimLost] = {}
        self._every = every or work.declared.time_limit.total_seconds() / THIRDS
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidemark-work", daemon=True)

    @property
    def lost(self) -> frozenset[str]:
        """The tokens of those claims that somebody else may have now."""
        with self._lock:
            return frozenset(self._lost)

    def ended(self, item: WorkItem) -> WorkItem:
        """Stop refreshing one of them, because it is about to end; as it was last refreshed."""
        with self._lock:
            return self._held.pop(item.token, item)

    def refresh(self) -> None:
        """Refresh all of them once."""
        with self._lock:
            for token, item in list(self._held.items()):
                try:
                    self._held[token] = self._work.refresh(item)
                except ClaimLost as error:
                    self._lost[token] = error
                    del self._held[token]
                except (Undecided, TooBusy):
                    # There are two more times before the limit.
                    continue

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self.refresh()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
