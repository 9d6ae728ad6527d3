"""Renews claims in a background thread while their work runs, and keeps the set of lost claims.

A lost claim is never renewed again. A claim that could not be renewed within its time limit counts as lost,
even where Cassandra did not confirm that. A worker checks ``lost`` before anything that cannot be undone; the
check does not block.
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
"""How often a claim is renewed within its time limit."""
_LOG = logging.getLogger(__name__)


class KeptClaims:
    """Renews claims until they end or the ``with`` block is left."""

    def __init__(self, work: Work, items: Iterable[WorkItem], every: float | None = None) -> None:
        self._work = work
        self._held = {item.token: item for item in items}
        self._lost: set[str] = set()
        self._lock = threading.Lock()
        every = every or work.declared.time_limit.total_seconds() / THIRDS
        # ``refresh`` handles each lost claim itself; the caller ends the others.
        self._holder = LeaseHolder(f"claims in {work.name}", self.refresh, every=every)

    @property
    def lost(self) -> frozenset[str]:
        """The tokens of the claims that another worker may hold now."""
        with self._lock:
            return frozenset(
                self._lost | {token for token, item in self._held.items() if self._is_over(item)}
            )

    def ended(self, item: WorkItem) -> WorkItem:
        """Stops renewing a claim that is about to end. Returns it as it was last renewed."""
        with self._lock:
            return self._held.pop(item.token, item)

    def refresh(self) -> None:
        """Renews all claims once."""
        with self._lock:
            held = list(self._held.values())
        for item in held:
            try:
                self._keep(item, self._work.refresh(item))
            except ClaimLost:
                self._keep(item, None)
            except Exception as error:
                # There are more renewals before the limit; an error must not end the thread.
                _LOG.warning("%s: %s was not refreshed: %s", self._work.name, item.key, error)

    def _keep(self, item: WorkItem, refreshed: WorkItem | None) -> None:
        """Stores a renewed claim, or None for a lost one, unless it has ended meanwhile."""
        with self._lock:
            if item.token not in self._held:
                return
            if refreshed is None:
                self._lost.add(item.token)
                del self._held[item.token]
            else:
                self._held[item.token] = refreshed

    def _is_over(self, item: WorkItem) -> bool:
        """Whether the time limit has passed since the last renewal, so that another worker may hold it."""
        return is_lapsed(item.claimed.entry, self._work.parts.clock(), self._work.declared.rules)

    def __enter__(self) -> Self:
        self._holder.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._holder.stop()
