"""Claims that are refreshed in a thread while their work takes its time, and the set of those that are lost.

Refreshing never brings a lost claim back, and a claim that could not be refreshed within its limit counts as
lost, even where Cassandra could not confirm it. A worker reads ``lost`` before anything that cannot be
undone; that does not block.
"""

import logging
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tidemark.consensus.lease_holder import LeaseHolder
from tidemark.work.claimed_item import WorkItem
from tidemark.work.client import Work
from tidemark.work.errors import ClaimLost
from tidemark.work.model.rules import is_lapsed

THIRDS = 3
"""A claim is refreshed so many times within its limit."""
_LOG = logging.getLogger(__name__)


class KeptClaims:
    """Refreshes claims until they end or this is left."""

    def __init__(self, work: Work, items: Iterable[WorkItem], every: float | None = None) -> None:
        self._work = work
        self._held = {item.token: item for item in items}
        self._lost: set[str] = set()
        self._lock = threading.Lock()
        every = every or work.declared.time_limit.total_seconds() / THIRDS
        # Claims are lost one by one, which ``refresh`` notices itself, and ended by the caller.
        self._holder = LeaseHolder(f"claims in {work.name}", self.refresh, every=every)

    @property
    def lost(self) -> frozenset[str]:
        """The tokens of those claims that somebody else may have now."""
        with self._lock:
            return frozenset(
                self._lost | {token for token, item in self._held.items() if self._is_over(item)}
            )

    def ended(self, item: WorkItem) -> WorkItem:
        """Stop refreshing one of them, because it is about to end; as it was last refreshed."""
        with self._lock:
            return self._held.pop(item.token, item)

    def refresh(self) -> None:
        """Refresh all of them once."""
        with self._lock:
            held = list(self._held.values())
        for item in held:
            try:
                self._keep(item, self._work.refresh(item))
            except ClaimLost:
                self._keep(item, None)
            except Exception as error:
                # There are two more times before the limit, and a thread that dies here loses all of them.
                _LOG.warning("%s: %s was not refreshed: %s", self._work.name, item.key, error)

    def _keep(self, item: WorkItem, refreshed: WorkItem | None) -> None:
        """Note what became of a claim, unless it has ended meanwhile."""
        with self._lock:
            if item.token not in self._held:
                return
            if refreshed is None:
                self._lost.add(item.token)
                del self._held[item.token]
            else:
                self._held[item.token] = refreshed

    def _is_over(self, item: WorkItem) -> bool:
        """Whether so much time has passed since it was last refreshed that somebody else may have it."""
        return is_lapsed(item.claimed.entry, self._work.parts.clock(), self._work.declared.rules)

    def __enter__(self) -> Self:
        self._holder.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._holder.stop()
