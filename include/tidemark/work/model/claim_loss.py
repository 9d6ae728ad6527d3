"""The cause of a lost claim, derived from what is stored for its key. Pure.

The newest ended claim is stored with the entry, and with the trace that a removed entry leaves. Of older
claims only this is known: a later claim superseded them.
"""

from enum import StrEnum
from typing import NamedTuple

from tidemark.work.model.decision import Gone, Outcome
from tidemark.work.model.entry import Ending, Entry, LastClaim
from tidemark.work.model.rules import Rules, expires_at, is_expired, is_lapsed, lapses_at


class LossCause(StrEnum):
    """How a claim ended before the call that found it lost.

    Attributes:
        LAPSED: Its time limit passed.
        EXPIRED: The entry expired.
        CANCELLED: The entry was cancelled.
        DONE: The holder ended it with ``done``.
        FAILED: The holder ended it with ``fail``; the entry is retried.
        SNOOZED: The holder ended it with ``snooze``.
        RELEASED: The holder ended it with ``release``.
        DEAD: The entry became a dead letter.
        SUPERSEDED: Later claims followed; how it ended is no longer stored.
        UNKNOWN: No claim with this token is known.
    """

    LAPSED = "lapsed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    DONE = "done"
    FAILED = "failed"
    SNOOZED = "snoozed"
    RELEASED = "released"
    DEAD = "dead"
    SUPERSEDED = "superseded"
    UNKNOWN = "unknown"


class LostClaim(NamedTuple):
    """How a claim ended, and which claim holds the entry now.

    Attributes:
        cause: How it ended.
        at: When it ended, in ms; None where that is unknown.
        holder: The owner of the claim that holds the entry now; None without one.
        holder_token: The token of that claim.
        after: Of a superseded claim: the newest claim that has ended since.
    """

    cause: LossCause
    at: int | None = None
    holder: str | None = None
    holder_token: str | None = None
    after: LastClaim | None = None


def why_lost(entry: Entry | None, gone: Gone | None, token: str, now: int, rules: Rules) -> LostClaim:
    """How the claim with this token ended; ``entry`` and ``gone`` are the newest stored values of its key."""
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
