"""What time alone does to an entry: it expires, or its claim lapses. Pure.

Every process that reads an entry derives the same change; compare-and-set makes sure that it is stored once.
"""

from dataclasses import replace

from tidemark.work.model.decision import Decision, Outcome
from tidemark.work.model.entry import (
    LARGEST_COUNT,
    DeadEntry,
    DeathReason,
    Ending,
    Entry,
    Request,
    Run,
    Status,
)
from tidemark.work.model.requests import joined
from tidemark.work.model.rules import Rules, is_expired, is_lapsed


def notice(entry: Entry | None, now: int, rules: Rules) -> Decision:
    """The entry as it is at ``now``: expiry and lapsed claims applied."""
    if entry is None:
        return Decision(None, Outcome.GONE)
    successor = entry.successor
    if successor is not None and is_expired(successor, now):
        successor = None
    if is_expired(entry.request, now):
        after = promoted(entry, successor) if successor else None
        return Decision(after, Outcome.EXPIRED, run=run_of(entry, now, Ending.EXPIRED))
    if successor is not entry.successor:
        entry = replace(entry, successor=None)
    return lapse(entry, now, rules) if is_lapsed(entry, now, rules) else Decision(entry, Outcome.UNCHANGED)


def lapse(entry: Entry, now: int, rules: Rules) -> Decision:
    """Ends a claim whose time limit has passed: the entry waits again, or becomes a dead letter."""
    counted = replace(
        entry,
        timeouts=min(entry.timeouts + 1, LARGEST_COUNT),
        total_timeouts=min(entry.total_timeouts + 1, LARGEST_COUNT),
    )
    run = run_of(entry, now, Ending.LAPSED)
    after = waiting_again(counted, rules)
    if after.timeouts >= rules.max_timeouts:
        letter = dead_letter(counted, DeathReason.TIMEOUTS, now)
        return Decision(None, Outcome.DEAD, letter, run)
    return Decision(after, Outcome.LAPSED, run=run)


def waiting_again(entry: Entry, rules: Rules) -> Entry:
    """The entry after a claim that ended undone, with the queued request merged into it."""
    again = entry.waiting()
    if again.successor is None:
        return again
    return joined(replace(again, successor=None), again.successor, rules)


def promoted(entry: Entry, successor: Request) -> Entry:
    """The queued request as the key's entry, with new counters apart from ``total_timeouts``."""
    return Entry(entry.key, Status.WAITING, successor, total_timeouts=entry.total_timeouts, ended=entry.token)


def run_of(entry: Entry, now: int, ending: Ending, error: str | None = None) -> Run | None:
    """The history row of the claim that ends now; None where the entry is not claimed."""
    if entry.is_waiting or entry.token is None or entry.owner is None or entry.began is None:
        return None
    return Run(entry.key, entry.owner, entry.token, entry.began, now, ending, error)


def dead_letter(entry: Entry, reason: DeathReason, now: int) -> DeadEntry:
    """The dead letter of an entry."""
    return DeadEntry(
        entry.key,
        reason,
        entry.request,
        entry.timeouts,
        entry.total_timeouts,
        entry.failures,
        entry.error,
        entry.owner,
        started=entry.began or 0,
        died=now,
    )
