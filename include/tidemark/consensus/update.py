"""The one loop around compare-and-set: read an object, decide, commit, and start over where another process
was faster.

``update`` is for rows of one object. ``retry_outpaced`` is the loop itself, for stores that read and commit
objects in a form of their own. Neither repeats a commit whose outcome is unknown: ``Undecided`` goes to the
caller, and the step that the caller repeats begins with a read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from tidemark.consensus.objects import Change, Consensus, ObjectKey, Outpaced, Snapshot

Seen = TypeVar("Seen")
Answer = TypeVar("Answer")


class ReadAgain(Exception):
    """Raised by an attempt that may not act on what it was given any more, whether or not it was changed."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a step is tried against faster processes, and what happens then."""

    tries: int
    busy: Callable[[], Exception]
    """The error to raise when no try is left; nothing was changed then."""
    wait: Callable[[int], None] = lambda tries: None
    """Called before another try, with the number of tries so far: the back-off."""


def update(
    consensus: Consensus,
    key: ObjectKey,
    rows: Sequence[str] | None,
    decide: Callable[[Snapshot], tuple[Change | None, Answer]],
    *,
    patience: Patience | None = None,
) -> Answer:
    """Change an object by what these rows of it are (None: all rows), and return ``decide``'s answer.

    ``decide`` gets a snapshot and returns the change, None where the object stays as it is, and the answer.
    It is called once for every version that was read, so it must not have effects that a second call would
    double. What it raises leaves the object as it was. The version after the commit is the snapshot's plus 1.
    """

    def read() -> Snapshot:
        return consensus.whole(key) if rows is None else consensus.read(key, rows)

    def attempt(snapshot: Snapshot) -> Answer:
        change, answer = decide(snapshot)
        if change is not None:
            consensus.commit(key, snapshot.version, change)
        return answer

    return retry_outpaced(read, attempt, patience=patience)


def retry_outpaced(
    read: Callable[[], Seen],
    attempt: Callable[[Seen], Answer],
    *,
    known: Seen | None = None,
    patience: Patience | None = None,
) -> Answer:
    """The answer of the first attempt that was not outpaced; each is given what was read after the last one.

    ``known`` was read before and saves the first read. Without ``patience`` it goes on for ever: one of the
    competing processes succeeds in every round, so each of them has its turn.
    """
    seen = read() if known is None else known
    for tries in count(1):
        try:
            return attempt(seen)
        except (Outpaced, ReadAgain):
            if patience is not None and tries == patience.tries:
                raise patience.busy() from None
        if patience is not None:
            patience.wait(tries)
        seen = read()
    raise AssertionError("never reached")
