"""Transitions of an entry other than inserts: claims, their renewal and their end, cancellations. Pure.

A claim has a fencing token. An event with another token changes nothing; its outcome is ``LOST``. A claim
whose time limit has passed is lost too, even if no process has recorded that yet.
"""

from dataclasses import dataclass, replace

from tidemark.work.model.decision import Decision, Outcome
from tidemark.work.model.entry import LARGEST_COUNT, DeathReason, Ending, Entry, Status
from tidemark.work.model.lapse import dead_letter, notice, promoted, run_of, waiting_again
from tidemark.work.model.rules import Rules, back_off, is_due, is_expired


@dataclass(frozen=True, slots=True)
class Notice:
    """Applies what time alone changes: expiry and lapsed claims. Has no fields."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker claims the entry.

    Attributes:
        token: The fencing token of the new claim.
        owner: The name of the worker.
    """

    token: str
    owner: str


@dataclass(frozen=True)
class HolderEvent:
    """An event from the worker that holds the entry; ``token`` is that of its claim."""

    token: str


class Refresh(HolderEvent):
    """Renews the claim: its time limit starts again."""


class Done(HolderEvent):
    """The work is done."""


@dataclass(frozen=True)
class Fail(HolderEvent):
    """The work failed with ``error``."""

    error: str


@dataclass(frozen=True)
class Snooze(HolderEvent):
    """Ends the claim and postpones the entry to ``until``, in ms. Not a failure."""

    until: int


class Release(HolderEvent):
    """Ends the claim without a result."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Removes the entry, claimed or not. Has no fields."""


Held = Refresh | Done | Fail | Snooze | Release
Event = Notice | Claim | Cancel | Held


def decide(entry: Entry | None, event: Event, now: int, rules: Rules) -> Decision:
    """The entry after the event; the same entry where nothing changes. None is a key without an entry."""
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
        # A refused event changes nothing: expiry and lapses are recorded by the next event that succeeds.
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
