"""A lease: one process at a time holds something, until a deadline that it renews; its fencing token tells an
old holder from the new one.

The rules alone. Where a lease is stored, and what else changes with it, is up to its owner: a writer's lease
is part of the writer, a log's is a row of the log. A change by compare-and-set together with the lease is
fenced by that. Plain writes are not, so a process that makes them checks the deadline before each. Renewal is
in ``lease_holder.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidemark.clock import SECOND, Clock, utc_time_text

LEASE = 60 * SECOND
"""How long a holder that died keeps others waiting."""
MARGIN = 10 * SECOND
"""How far the clocks of two machines may be apart: ``bind`` refuses more."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The process that alone may change something, and until when."""

    holder: str
    token: int
    """Grows with every new holder, so that an old one is recognised; never comes back."""
    deadline: int

    def is_held_at(self, now: int) -> bool:
        """Whether its time is not over."""
        return self.deadline > now

    def is_safe_at(self, now: int) -> bool:
        """Whether its time is not over by anybody's clock."""
        return now < self.deadline - MARGIN

    def prolonged(self, now: int) -> "Lease":
        """The same, for as long as a new one."""
        return replace(self, deadline=now + LEASE)

    @property
    def until(self) -> str:
        """The deadline, for people."""
        return utc_time_text(self.deadline)


def lease_of_another(found: Lease | None, holder: str, now: int) -> Lease | None:
    """The lease that keeps a holder from taking one; its own does not."""
    return found if found is not None and found.is_held_at(now) and found.holder != holder else None


def new_lease(newest_token: int, holder: str, now: int) -> Lease:
    """The lease that comes after all there were."""
    return Lease(holder, newest_token + 1, now + LEASE)


def confirmed(lease: Lease, reload: Callable[[], Lease | None], clock: Clock) -> Lease | None:
    """The lease where it is certainly still held, else None; ``reload`` reads it, which is needed only when
    its time is nearly over: its holder may have renewed it."""
    if lease.is_safe_at(clock()):
        return lease
    found = reload()
    if found is None or found.token != lease.token or not found.is_safe_at(clock()):
        return None
    return found
