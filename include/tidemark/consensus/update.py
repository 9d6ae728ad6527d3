"""The loop around compare-and-set: read an object, decide, commit, and retry where another process committed
first.

``update`` is for rows of one object. ``retry_outpaced`` is the loop itself, for stores with their own
functions to read and commit. Neither retries a commit whose outcome is unknown: ``Undecided`` is raised to
the caller, whose retry begins with a read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from tidemark.consensus.objects import Change, Consensus, ObjectKey, Outpaced, Snapshot

Seen = TypeVar("Seen")
Answer = TypeVar("Answer")


class ReadAgain(Exception):
    """Raised by an attempt that must not act on the state it was given any more, even if it is unchanged."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The limit on attempts that other processes outpace.

    Attributes:
        tries: The greatest number of attempts.
        busy: Makes the error to raise after the last attempt; nothing was changed then.
        wait: The backoff: called before each retry with the number of attempts so far.
    """

    tries: int
    busy: Callable[[], Exception]
    wait: Callable[[int], None] = lambda tries: None


def update(
    consensus: Consensus,
    key: ObjectKey,
    rows: Sequence[str] | None,
    decide: Callable[[Snapshot], tuple[Change | None, Answer]],
    *,
    patience: Patience | None = None,
) -> Answer:
    """Read the named rows of an object (None: all rows), commit what ``decide`` derives from them, and return
    its answer.

    ``decide`` gets a snapshot and returns the change (None to leave the object unchanged) and the answer. It
    is called once for each version that is read, so it must be idempotent. An error it raises leaves the
    object unchanged. The version after the commit is the snapshot's plus 1.
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
    """Returns the result of the first attempt that is not outpaced; each attempt gets newly read state.

    ``known`` is state that the caller has read already; it saves the first read. Without ``patience`` there
    is no limit: in every round one of the competing processes succeeds, so each of them succeeds in the end.
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
