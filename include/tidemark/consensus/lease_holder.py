"""Renewal in the background: a thread renews what a process holds (a lease, a reader's row, claims of work)
while the process works, however long one step takes, and releases it in the end.

This does not fence anything. A loss is noticed only at the next renewal, so a process that writes without
compare-and-set must check the deadline itself before each write (``Lease.is_safe_at``).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self, TypeVar

import structlog

from tidemark.clock import SECOND
from tidemark.consensus.lease import LEASE

events = structlog.get_logger()

RENEWALS = 4
"""The number of renewals within a term: several of them may fail before the lease is lost."""


class Renewable(Protocol):
    """A resource that is held until a deadline."""

    @property
    def lost(self) -> type[Exception]:
        """The error that ``renew`` and ``release`` raise once another process holds the resource."""

    @property
    def what(self) -> str:
        """The name of the resource, for log lines."""

    def renew(self) -> None:
        """Extend the deadline."""

    def release(self) -> None:
        """End the hold before its deadline."""


Held = TypeVar("Held", bound=Renewable)


class LeaseHolder:
    """Renews in a thread from ``start`` (or ``with``) to ``stop``; ``stop`` also releases.

    A failed renewal is logged and tried again in the next round. If renewals keep failing, the work stops at
    its next fenced change. After one of the errors in ``lost`` nothing is renewed or released any more.

    Args:
        what: The name of the resource, for log lines.
        renew: Extends the deadline.
        release: Ends the hold.
        lost: The errors by which ``renew`` and ``release`` report that another process holds the resource.
        every: The time between two renewals, in seconds.
    """

    def __init__(
        self,
        what: str,
        renew: Callable[[], None],
        release: Callable[[], None] = lambda: None,
        *,
        lost: type[Exception] | tuple[type[Exception], ...] = (),
        every: float = LEASE / SECOND / RENEWALS,
    ) -> None:
        self._what, self._renew, self._release, self._lost, self._every = what, renew, release, lost, every
        self._over, self._is_lost = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lease of {what}", daemon=True)

    @property
    def is_lost(self) -> bool:
        """Whether a renewal has found that another process holds the resource."""
        return self._is_lost.is_set()

    def start(self) -> None:
        """Start renewing."""
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing, and release. Raises nothing: an error here must not hide an error of the work."""
        self._over.set()
        self._thread.join()
        if self.is_lost:
            return
        try:
            self._release()
        except self._lost:
            self._is_lost.set()
        except Exception as error:
            events.warning("lease not given back; it ends by itself", of=self._what, error=str(error))

    def _run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self._renew()
            except self._lost as error:
                self._is_lost.set()
                events.warning("lease lost", of=self._what, error=str(error))
                return
            except Exception as error:
                events.warning("lease not renewed", of=self._what, error=str(error))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


@contextmanager
def holding(hold: Held, every: float = LEASE / SECOND / RENEWALS) -> Iterator[Held]:
    """Renew a lease while the block runs, every so many seconds; then release it."""
    with LeaseHolder(hold.what, hold.renew, hold.release, lost=hold.lost, every=every):
        yield hold
