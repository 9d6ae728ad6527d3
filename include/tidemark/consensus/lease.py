"""Leases: one process at a time holds a resource, until a deadline that it renews. A fencing token
distinguishes the current holder from earlier ones.

Only the rules are here. Each kind of resource stores its own lease: a writer's lease is part of the writer
object, a log's lease is a row of the log object. Compare-and-set on the object that has the lease fences a
change. Plain writes are not fenced, so a process must check the deadline before each of them. Renewal is in
``lease_holder.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidemark.clock import SECOND, Clock, utc_time_text

LEASE = 60 * SECOND
"""The term of a lease in µs: how long a crashed holder blocks other processes."""
MARGIN = 10 * SECOND
"""The assumed greatest difference (µs) between the clocks of two machines: ``bind`` refuses more."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The exclusive right of one process to change a resource.

    Attributes:
        holder: The process that holds it.
        token: The fencing token: it grows with every new lease and is never reused.
        deadline: When it ends, in µs.
    """

    holder: str
    token: int
    deadline: int

    def is_held_at(self, now: int) -> bool:
        """Whether the deadline is in the future."""
        return self.deadline > now

    def is_safe_at(self, now: int) -> bool:
        """Whether the deadline is in the future on every machine, whatever its clock's error within
        ``MARGIN``.
        """
        return now < self.deadline - MARGIN

    def prolonged(self, now: int) -> "Lease":
        """The same lease with a full term from ``now``."""
        return replace(self, deadline=now + LEASE)

    @property
    def until(self) -> str:
        """The deadline as text, for messages."""
        return utc_time_text(self.deadline)


def lease_of_another(found: Lease | None, holder: str, now: int) -> Lease | None:
    """The found lease where it keeps ``holder`` from taking one: it has not ended and belongs to another."""
    return found if found is not None and found.is_held_at(now) and found.holder != holder else None


def new_lease(newest_token: int, holder: str, now: int) -> Lease:
    """A lease with the next fencing token after ``newest_token``."""
    return Lease(holder, newest_token + 1, now + LEASE)


def confirmed(lease: Lease, reload: Callable[[], Lease | None], clock: Clock) -> Lease | None:
    """The lease, or its newer form, where it is certainly still held; else None.

    ``reload`` reads the stored lease. It is called only near the deadline, where the holder's own copy may be
    older than its last renewal.
    """
    if lease.is_safe_at(clock()):
        return lease
    found = reload()
    if found is None or found.token != lease.token or not found.is_safe_at(clock()):
        return None
    return found
