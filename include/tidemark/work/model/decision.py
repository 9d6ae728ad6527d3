"""What a decision about an entry comes to: what to store, and what to write down before that."""

from dataclasses import dataclass
from enum import StrEnum

from tidemark.work.model.entry import DeadEntry, Entry, LastClaim, Run


class Outcome(StrEnum):
    """What happened: the answer to a call."""

    INSERTED = "inserted"
    MERGED = "merged"
    QUEUED = "queued"
    """The key is being processed: the request waits behind."""
    UNCHANGED = "unchanged"
    EXPIRED = "expired"
    """Its expiry has passed, or comes before the date from which it may be processed."""
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
    """There is nothing any more that could be changed, and nothing has to be."""
    LOST = "claim lost"


@dataclass(frozen=True, slots=True)
class Decision:
    """``entry`` is what is there afterwards, None for nothing; dead letter and run are written first."""

    entry: Entry | None
    outcome: Outcome
    dead: DeadEntry | None = None
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """When and how the last entry of a key went. Earlier versions noted only when."""

    at: int
    how: Outcome | None = None
    last: LastClaim | None = None
    """Its last claim, if it had one."""
