"""Read-only listings of a journal: entries in the order of work, figures, history.

Entries are found through their hints, so the cost is proportional to their number. Expired entries are left
out, even while they are stored.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.work.model.buckets import BucketState
from tidemark.work.model.days import days_back
from tidemark.work.model.entry import Entry, Run
from tidemark.work.model.lapse import notice
from tidemark.work.queue.dead_letters import dead_letters
from tidemark.work.queue.due_queue import PAGE, all_lanes, pages
from tidemark.work.queue.entry_updates import Parts
from tidemark.work.store.due import BEGINNING, Place
from tidemark.work.store.registry import Registered

ALL_TIME: Place = (2**62, "\U0010ffff")


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a journal."""

    journal: str
    paused: str | None
    waiting: int
    due: int
    processing: int
    behind: int
    """Requests queued behind a claim."""
    by_priority: dict[int, int]
    oldest_due: int | None
    """The insertion date of the oldest entry that could be claimed, in ms; None without one."""
    next_look: int | None
    """When the next entry may become due, lapse or expire, in ms; None without one."""
    timeouts: int
    dead: int
    unseen: int
    """Dead letters that no operator has marked as seen."""
    buckets: dict[str, str]


def live_entries(parts: Parts, registered: Registered, now: int) -> Iterator[Entry]:
    """Every live entry, smallest priority first, then in the order of their hints."""
    buckets = sorted(
        bucket.id
        for bucket in registered.buckets.values()
        if bucket.state in (BucketState.OPEN, BucketState.SEALED)
    )
    for lanes in all_lanes(parts.due, buckets, parts.declared.shards):
        for lane in lanes:
            for hint in pages(parts.due, lane, BEGINNING, ALL_TIME, PAGE):
                stored = parts.entries.read(hint.key)
                seen = notice(stored.entry, now, parts.declared.rules).entry if stored.names(hint) else None
                if seen is not None:
                    yield seen


def figures(parts: Parts, now: int) -> Figures:
    """Counts entries and dead letters."""
    registered = parts.registry.read()
    entries = list(live_entries(parts, registered, now))
    waiting, dead = [entry for entry in entries if entry.is_waiting], list(dead_letters(parts, now))
    due = [entry for entry in waiting if entry.request.process <= now]
    return Figures(
        journal=parts.declared.name,
        paused=None if registered.paused is None else registered.paused.reason,
        waiting=len(waiting),
        due=len(due),
        processing=len(entries) - len(waiting),
        behind=sum(entry.successor is not None for entry in entries),
        by_priority=dict(sorted(Counter(entry.request.priority for entry in entries).items())),
        oldest_due=min((entry.request.inserted for entry in due), default=None),
        next_look=next_look(parts, registered, now),
        timeouts=sum(entry.total_timeouts for entry in entries),
        dead=len(dead),
        unseen=sum(kept.seen is None for kept in dead),
        buckets={one.id: one.state.value for one in sorted(registered.buckets.values(), key=lambda b: b.id)},
    )


def next_look(parts: Parts, registered: Registered, now: int) -> int | None:
    """The time of the next hint, in ms; None without one. Reads one hint per lane, and no entry.

    The hint may be unused: a process that wakes up for it finds nothing, and waits again.
    """
    for bucket in sorted(registered.buckets):
        if registered.buckets[bucket].state is not BucketState.OPEN:
            continue
        first = [
            hint.due_at
            for lanes in all_lanes(parts.due, [bucket], parts.declared.shards)
            for lane in lanes
            for hint in parts.due.page(lane, (now, ALL_TIME[1]), ALL_TIME[0], 1)
        ]
        if first:
            return min(first)
    return None


def history(parts: Parts, now: int, days: int) -> Iterator[Run]:
    """The claims that ended in the last ``days`` days, newest first."""
    yield from parts.archive.runs(days_back(now, days))
