"""The result of a decision about an entry: what to store, and what to record before that."""

from dataclasses import dataclass
from enum import StrEnum

from tidemark.work.model.entry import DeadEntry, Entry, LastClaim, Run


class Outcome(StrEnum):
    """The outcome of a call.

    Attributes:
        INSERTED: The key has a new entry.
        MERGED: The request was merged into a waiting entry.
        QUEUED: The key is being processed; the request waits behind it.
        UNCHANGED: Nothing changed.
        EXPIRED: The expiry has passed, or comes before the earliest time of processing.
        CLAIMED: The caller holds the entry.
        NOT_DUE: The entry may not be claimed yet.
        HELD: Another claim holds the entry.
        REFRESHED: The claim was renewed.
        DONE: The claim ended, and the entry is removed.
        FAILED: The claim ended; the entry is retried after its backoff.
        DEAD: The entry became a dead letter.
        SNOOZED: The claim ended, and the entry is postponed.
        RELEASED: The claim ended without a result.
        CANCELLED: The entry was removed.
        LAPSED: The claim's time limit has passed.
        GONE: There is no entry left to change, and no change is needed.
        LOST: The claim had ended before; nothing changed.
    """

    INSERTED = "inserted"
    MERGED = "merged"
    QUEUED = "queued"
    UNCHANGED = "unchanged"
    EXPIRED = "expired"
    CLAIMED = "claimed"
    NOT_DUE = "not due"
    HELD = "held"
    REFRESHED = "refreshed"
    DONE = "done"
    FAILED = "failed"
    DEAD = "dead"
    SNOOZED = "snoozed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    LAPSED = "lapsed"
    GONE = "gone"
    LOST = "claim lost"


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of an event, and what to store.

    Attributes:
        entry: The entry afterwards; None for no entry.
        outcome: The answer to the call.
        dead: The dead letter to store before the entry changes.
        run: The ended claim to store in the history before the entry changes.
    """

    entry: Entry | None
    outcome: Outcome
    dead: DeadEntry | None = None
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """The trace of a removed entry. Earlier versions stored only its time.

    Attributes:
        at: When the entry was removed, in ms.
        how: The outcome that removed it.
        last: Its last claim; None where it was never claimed.
    """

    at: int
    how: Outcome | None = None
    last: LastClaim | None = None
