"""Claims due entries, calls a handler with each, and ends each claim with the handler's result.

No claim outlives the call: an entry that was not processed is failed with its error, or released.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tidemark.work.claim_renewal import KeptClaims
from tidemark.work.claimed_item import WorkItem
from tidemark.work.client import Work
from tidemark.work.errors import ClaimLost

Handler = Callable[[WorkItem], Any]
Show = Callable[..., None]


class Stopped(BaseException):
    """Interrupts a handler. Not an ``Exception``, so that no handler treats it as its entry's error."""


class Stop:
    """A stop request from a signal handler. It interrupts work handlers, never a write."""

    def __init__(self) -> None:
        self._is_asked = self._may_interrupt = False

    def ask(self) -> None:
        """Stops: raises ``Stopped`` inside a running handler, else before the next one."""
        self._is_asked = True
        if self._may_interrupt:
            self._may_interrupt = False
            raise Stopped

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """The block in which a handler runs and may be interrupted."""
        if self._is_asked:
            raise Stopped
        self._may_interrupt = True
        try:
            yield
        finally:
            self._may_interrupt = False


def drain(work: Work, handler: Handler, limit: int, show: Show, stop: Stop | None = None) -> dict[str, int]:
    """Processes up to ``limit`` entries of one claim. Returns the number of entries for each result."""
    stop = stop or Stop()
    items = work.claim(limit)
    counts = dict.fromkeys(("done", "failed", "dead", "lost"), 0)
    left = {item.token: item for item in items}
    with KeptClaims(work, items) as kept:
        try:
            for item in items:
                outcome = "lost" if item.token in kept.lost else _do(work, handler, item, kept, show, stop)
                counts[outcome] = counts.get(outcome, 0) + 1
                del left[item.token]
        finally:
            _give_back(work, [kept.ended(item) for item in left.values()], show)
    return counts


def _do(work: Work, handler: Handler, item: WorkItem, kept: KeptClaims, show: Show, stop: Stop) -> str:
    """Processes one entry. Returns ``done``, ``failed``, ``dead`` or ``lost``."""
    error: str | None = None
    try:
        with stop.interrupting():
            handler(item)
    except Exception as failure:  # any error fails its entry only; the others go on
        error = f"{type(failure).__name__}: {failure}"
        show("%s: %s failed: %s", work.name, item.key, error)
    current = kept.ended(item)
    try:
        return str(work.done(current) if error is None else work.fail(current, error))
    except ClaimLost as lost:
        show("%s", lost)
        return "lost"


def _give_back(work: Work, items: Iterable[WorkItem], show: Show) -> None:
    """Releases the claims; one that cannot be released lapses at its time limit."""
    for item in items:
        try:
            work.release(item)
        except Exception as error:  # the other claims must still be released
            show("%s: %s was not given back: %s", work.name, item.key, error)
