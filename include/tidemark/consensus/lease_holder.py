"""The one holder with renewal: a thread prolongs what a process holds (a lease, a reader's row, claims of
work) while the process works, however long one step takes, and gives it back in the end.

The holder does not fence anything. It learns of a loss only when it renews, so a process that writes without
compare-and-set asks for the deadline itself before each write (``Lease.is_safe_at``).
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
"""How often a lease is renewed within its term: several renewals may fail before it is lost."""


class Renewable(Protocol):
    """Something that is held until a deadline."""

    @property
    def lost(self) -> type[Exception]:
        """What ``renew`` and ``release`` raise once another process has it."""

    @property
    def what(self) -> str:
        """What is held, for the log."""

    def renew(self) -> None:
        """Prolong it."""

    def release(self) -> None:
        """Give it back."""


Held = TypeVar("Held", bound=Renewable)


class LeaseHolder:
    """Renews in a thread from ``start`` (or ``with``) to ``stop``; ``stop`` gives it back.

    A renewal that fails is logged and tried again in the next round: the work stops at its next fenced
    change, if the trouble lasts. After one of the errors in ``lost`` there is nothing to renew or to give
    back any more.
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
        """Whether a renewal has found that another process has it."""
        return self._is_lost.is_set()

    def start(self) -> None:
        """Renew from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Renew no more, and give it back. Raises nothing: what was committed stays so, and an error of the
        work itself is the one that people must see."""
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
    """Keep a lease alive while the block works; then give it back."""
    with LeaseHolder(hold.what, hold.renew, hold.release, lost=hold.lost, every=every):
        yield hold
