"""A lease: one at a time has something, until a deadline that it prolongs, and an old holder is recognised.

The rules alone; where a lease is kept, and what else changes with it, is up to whoever lends something: a
writer's lease is part of the writer, a log's is a row of the log. Whatever is changed by compare-and-set with
the lease is fenced by that. Plain writes are not, so whoever does them looks at the deadline before each.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import structlog

from tidemark.clock import SECOND, utc_time_text

events = structlog.get_logger()

LEASE = 60 * SECOND
"""How long a holder that died keeps others waiting."""
MARGIN = 10 * SECOND
"""How far the clocks of two machines may be apart: ``bind`` refuses more."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who alone may change something, and until when."""

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


@contextmanager
def kept_alive(
    what: str,
    renew: Callable[[], None],
    release: Callable[[], None],
    is_lost: Callable[[Exception], bool],
    every: float = LEASE / SECOND / 4,
) -> Iterator[None]:
    """Prolong a lease while the block works, however long one step takes; then give it back."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(every):
            try:
                renew()
            except Exception as error:
                # The next change meets the same trouble, and stops the work with it.
                events.warning("lease not renewed", of=what, error=str(error))

    keeper = threading.Thread(target=keep, name="lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
        # What is committed stays so, and what went wrong before is what people must hear.
        try:
            release()
        except Exception as error:
            if not is_lost(error):  # else it is somebody else's already
                events.warning("lease not given back; it ends by itself", of=what, error=str(error))
