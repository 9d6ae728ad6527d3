"""What a decision about an entry comes to: what to store, and what to write down before that."""

from dataclasses import dataclass
from enum import StrEnum

from tidemark.work.entry import DeadLetter, Entry, Run


class Outcome(StrEnum):
    """What happened, for whoever asked."""

    INSERTED = "inserted"
    MERGED = "merged"
    QUEUED = "queued"
    """Somebody is processing the key: the request waits behind."""
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
    """There is nothing any more that could be changed, and nothing has to be."""
    LOST = "claim lost"


@dataclass(frozen=True, slots=True)
class Decision:
    """``entry`` is what is there afterwards, None for nothing; dead letter and run are written first."""

    entry: Entry | None
    outcome: Outcome
    dead: DeadLetter | None = None
    run: Run | None = None
