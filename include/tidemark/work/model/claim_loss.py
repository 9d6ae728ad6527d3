"""Why a claim is lost: what became of it, read from what is stored for its key. Changes nothing.

The newest claim that has ended is kept with the entry, and with the trace of an entry that is gone. Of older
claims only that another one came after them is known.
"""

from dataclasses import dataclass
from enum import StrEnum

from tidemark.work.model.decision import Gone, Outcome
from tidemark.work.model.entry import Ending, Entry, LastClaim
from tidemark.work.model.rules import Rules, expires_at, is_expired, is_lapsed, lapses_at


class LossCause(StrEnum):
    """What ended a claim before its holder did, or before its holder did so again."""

    LAPSED = "lapsed"
    """Its time limit passed."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    DONE = "done"
    """Its holder has said that it is done."""
    FAILED = "failed"
    """Its holder has said that it failed, and it waits, or waited, for its next try."""
    SNOOZED = "snoozed"
    RELEASED = "released"
    DEAD = "dead"
    """It was given up: there is a dead letter."""
    SUPERSEDED = "superseded"
    """Other claims came after it; how it ended is not kept any more."""
    UNKNOWN = "unknown"
    """No claim with this token is known."""


@dataclass(frozen=True, slots=True)
class LostClaim:
    """What became of a claim, and which claim holds the entry now."""

    cause: LossCause
    at: int | None = None
    """When it ended, in ms; None where that is not known."""
    holder: str | None = None
    """The owner of the claim that holds the entry now; None if none does."""
    holder_token: str | None = None
    after: LastClaim | None = None
    """Of a superseded claim: the newest one that has ended since."""


def why_lost(entry: Entry | None, gone: Gone | None, token: str, now: int, rules: Rules) -> LostClaim:
    """What became of the claim with this token; ``entry`` and ``gone`` are the newest that is stored."""
    if entry is None:
        return _of_gone(gone, token)
    if entry.token == token and not entry.is_waiting:
        if is_expired(entry.request, now):
            return LostClaim(LossCause.EXPIRED, expires_at(entry.request))
        return LostClaim(LossCause.LAPSED, lapses_at(entry.start or 0, rules))
    holder, holder_token = _holder(entry, now, rules)
    last = entry.last
    if last is not None and last.token == token:
        return LostClaim(LossCause(last.ending), last.ended, holder, holder_token)
    if entry.ended == token:
        return LostClaim(LossCause.DONE, None, holder, holder_token)
    if holder is not None or last is not None:
        return LostClaim(LossCause.SUPERSEDED, None, holder, holder_token, last)
    return LostClaim(LossCause.UNKNOWN)


def _of_gone(gone: Gone | None, token: str) -> LostClaim:
    if gone is None or gone.last is None:
        return LostClaim(LossCause.UNKNOWN)
    last = gone.last
    if last.token != token:
        return LostClaim(LossCause.SUPERSEDED, after=last)
    is_dead = gone.how is Outcome.DEAD and last.ending in (Ending.FAILED, Ending.LAPSED)
    return LostClaim(LossCause.DEAD if is_dead else LossCause(last.ending), last.ended)


def _holder(entry: Entry, now: int, rules: Rules) -> tuple[str | None, str | None]:
    if entry.is_waiting or is_lapsed(entry, now, rules):
        return None, None
    return entry.owner or "", entry.token
