"""Doing what is due: claims, a handler called with each, and what became of it.

Whatever ends the work, no claim outlives it: what is not done is failed with its error or given back.
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
    """Somebody wants the work to stop now; no handler takes this for an error of its entry."""


class Stop:
    """A wish to stop, from a signal's handler: it interrupts handlers, and nothing that is half written."""

    def __init__(self) -> None:
        self._is_asked = self._may_interrupt = False

    def ask(self) -> None:
        """Stop: where a handler runs by raising ``Stopped`` in the midst of it, else before the next one."""
        self._is_asked = True
        if self._may_interrupt:
            self._may_interrupt = False
            raise Stopped

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """A handler runs here."""
        if self._is_asked:
            raise Stopped
        self._may_interrupt = True
        try:
            yield
        finally:
            self._may_interrupt = False


def drain(work: Work, handler: Handler, limit: int, show: Show, stop: Stop | None = None) -> dict[str, int]:
    """Do up to ``limit`` entries in one claim; what became of them."""
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
    """One entry: done, failed, dead or lost."""
    error: str | None = None
    try:
        with stop.interrupting():
            handler(item)
    except Exception as failure:  # whatever it is, it is the entry's error, and the others go on
        error = f"{type(failure).__name__}: {failure}"
        show("%s: %s failed: %s", work.name, item.key, error)
    current = kept.ended(item)
    try:
        return str(work.done(current) if error is None else work.fail(current, error))
    except ClaimLost as lost:
        show("%s", lost)
        return "lost"


def _give_back(work: Work, items: Iterable[WorkItem], show: Show) -> None:
    """Give back as many as can be; the time limit does it for the others."""
    for item in items:
        try:
            work.release(item)
        except Exception as error:  # the others are to be given back all the same
            show("%s: %s was not given back: %s", work.name, item.key, error)
