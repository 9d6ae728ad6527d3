"""What anything but a packet does to an entry: claims, what workers say about them, cancellations.

A claim has a fencing token. A caller with another token than the entry's changes nothing and is told that its
claim is lost. The right token is lost too once the time limit is over, whether or not a process noticed that.
"""

from dataclasses import dataclass, replace

from tidemark.work.model.decision import Decision, Outcome
from tidemark.work.model.entry import LARGEST_COUNT, DeathReason, Ending, Entry, Status
from tidemark.work.model.lapse import dead_letter, notice, promoted, run_of, waiting_again
from tidemark.work.model.rules import Rules, back_off, is_due, is_expired


@dataclass(frozen=True, slots=True)
class Notice:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker wants to process it."""

    token: str
    owner: str


@dataclass(frozen=True)
class HolderEvent:
    """What a worker says that has claimed the entry; the token is that of its claim."""

    token: str


class Refresh(HolderEvent):
    """The holder is still at it: the time limit begins anew."""


class Done(HolderEvent):
    """The holder has done it."""


@dataclass(frozen=True)
class Fail(HolderEvent):
    """The holder could not do it."""

    error: str


@dataclass(frozen=True)
class Snooze(HolderEvent):
    """The holder wants it later; counts as no failure."""

    until: int


class Release(HolderEvent):
    """The holder gives it back as it was."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The work is not wanted any more, claimed or not."""


Held = Refresh | Done | Fail | Snooze | Release
Event = Notice | Claim | Cancel | Held


def decide(entry: Entry | None, event: Event, now: int, rules: Rules) -> Decision:
    """What is there after the event; the same entry where nothing changes."""
    noticed = notice(entry, now, rules)
    match event:
        case Notice():
            return noticed
        case Claim():
            return _claim(noticed, event, now)
        case Cancel():
            return _cancel(entry, noticed, now)
        case _:
            return _held(entry, noticed, event, now, rules)


def _claim(noticed: Decision, event: Claim, now: int) -> Decision:
    entry = noticed.entry
    if entry is None:
        return noticed
    if entry.token == event.token:
        return replace(noticed, outcome=Outcome.CLAIMED)
    if not entry.is_waiting:
        return replace(noticed, outcome=Outcome.HELD)
    if not is_due(entry, now):
        return replace(noticed, outcome=Outcome.NOT_DUE)
    taken = replace(
        entry, status=Status.PROCESSING, token=event.token, owner=event.owner, start=now, claimed=now
    )
    return replace(noticed, entry=taken, outcome=Outcome.CLAIMED)


def _cancel(entry: Entry | None, noticed: Decision, now: int) -> Decision:
    if noticed.entry is None or entry is None:
        return noticed
    return Decision(None, Outcome.CANCELLED, run=run_of(entry, now, Ending.CANCELLED))


def _held(entry: Entry | None, noticed: Decision, event: Held, now: int, rules: Rules) -> Decision:
    if isinstance(event, Done) and (entry is None or _was_held_until_it_expired(entry, event.token, now)):
        return replace(noticed, outcome=Outcome.GONE)
    if isinstance(event, Done) and entry is not None and entry.ended == event.token:
        return Decision(entry, Outcome.GONE)
    held = noticed.entry
    if held is None or held.is_waiting or held.token != event.token:
        # What only looking at it would have changed is left to those who look.
        return Decision(entry, Outcome.LOST)
    match event:
        case Refresh():
            return Decision(replace(held, start=max(now, held.start or now)), Outcome.REFRESHED)
        case Done():
            after = promoted(held, held.successor) if held.successor else None
            return Decision(after, Outcome.DONE, run=run_of(held, now, Ending.DONE))
        case Fail():
            return _failed(held, event, now, rules)
        case Snooze():
            later = replace(held, request=replace(held.request, process=max(event.until, now)))
            run = run_of(held, now, Ending.SNOOZED)
            return Decision(waiting_again(later, rules), Outcome.SNOOZED, run=run)
        case Release():
            run = run_of(held, now, Ending.RELEASED)
            return Decision(waiting_again(held, rules), Outcome.RELEASED, run=run)


def _was_held_until_it_expired(entry: Entry, token: str, now: int) -> bool:
    return entry.token == token and is_expired(entry.request, now)


def _failed(held: Entry, event: Fail, now: int, rules: Rules) -> Decision:
    failures = min(held.failures + 1, LARGEST_COUNT)
    later = replace(held.request, process=now + back_off(held.key, failures, rules))
    counted = replace(held, failures=failures, error=event.error, request=later)
    run = run_of(held, now, Ending.FAILED, event.error)
    after = waiting_again(counted, rules)
    if after.failures >= rules.max_failures:
        letter = dead_letter(replace(counted, request=held.request), DeathReason.FAILURES, now)
        return Decision(None, Outcome.DEAD, letter, run)
    return Decision(after, Outcome.FAILED, run=run)
