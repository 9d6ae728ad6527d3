"""What time alone does to an entry: it expires, or whoever claimed it has had too long.

Whoever looks at an entry notices; that the change is made once, however many do, is up to whoever stores it.
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
    """The entry as everybody has to see it now."""
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
    """One claim too many seconds old: waiting again with one more on the counter, or given up."""
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
    """An entry whose claim has ended without being done; what was asked for meanwhile is merged into it."""
    again = entry.waiting()
    if again.successor is None:
        return again
    return joined(replace(again, successor=None), again.successor, rules)


def promoted(entry: Entry, successor: Request) -> Entry:
    """The successor as the key's entry: its own dates, its own counters."""
    return Entry(entry.key, Status.WAITING, successor, total_timeouts=entry.total_timeouts, ended=entry.token)


def run_of(entry: Entry, now: int, ending: Ending, error: str | None = None) -> Run | None:
    """The claim that ends here, if there is one."""
    if entry.is_waiting or entry.token is None or entry.owner is None or entry.began is None:
        return None
    return Run(entry.key, entry.owner, entry.token, entry.began, now, ending, error)


def dead_letter(entry: Entry, reason: DeathReason, now: int) -> DeadEntry:
    """A full copy of what is given up."""
    return DeadEntry(
        key=entry.key,
        reason=reason,
        request=entry.request,
        timeouts=entry.timeouts,
        total_timeouts=entry.total_timeouts,
        failures=entry.failures,
        error=entry.error,
        owner=entry.owner,
        started=entry.began or 0,
        died=now,
    )
