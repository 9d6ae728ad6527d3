"""The one way an entry changes: read, decide, write down what must not be lost, then compare-and-set.

First the hint by which the changed entry will be found again, then the dead letter and the run, then the
entry. A process that dies in between leaves a hint that no entry names, a dead letter that is written again,
or nothing: never an entry that nobody will look at.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidemark.consensus.objects import Outpaced
from tidemark.faults import FaultPoint, reach
from tidemark.work.appointments import appointment, serves
from tidemark.work.buckets import BucketState, bucket_of, ends
from tidemark.work.decision import Decision, Outcome
from tidemark.work.declaration import WorkDeclaration, milliseconds
from tidemark.work.due import Archive, Due
from tidemark.work.entries import Entries, Stored
from tidemark.work.entry import Entry, Hint
from tidemark.work.errors import TooBusy
from tidemark.work.registry import Registry

TRIES = 60
Clock = Callable[[], int]
Decide = Callable[[Entry | None, int], Decision]


@dataclass(frozen=True, slots=True)
class Changed:
    """What was decided, and what is there now."""

    outcome: Outcome
    stored: Stored
    decision: Decision


@dataclass(frozen=True, slots=True)
class Parts:
    """Where one journal is kept, and the clock it goes by."""

    declared: WorkDeclaration
    registry: Registry
    entries: Entries
    due: Due
    archive: Archive
    clock: Clock
    new_id: Callable[[], str]
    """For a hint: never the same twice."""
    wait: Callable[[int], None]
    """Called with the number of tries so far before another: others need a moment to get out of the way."""


class Changing:
    """Changes entries of one journal."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._declared = parts, parts.declared
        self._settle = milliseconds(parts.declared.settle)
        self._open: dict[str, int] = {}
        """Buckets known to be open, and when that is over."""

    def change(self, key: str, decide: Decide, known: Stored | None = None) -> Changed:
        """Decide about an entry and store the result; ``known`` saves a read, but is not enough to refuse."""
        parts = self._parts
        for tries in range(1, TRIES + 1):
            stored, is_fresh = (parts.entries.read(key), True) if known is None else (known, False)
            known = None
            now = parts.clock()
            decision = decide(stored.entry, now)
            entry = self._armed(decision.entry, now, stored.version)
            if entry == stored.entry:
                if is_fresh:
                    return Changed(decision.outcome, stored, decision)
                continue
            self._write_down(decision, stored.version)
            # A hint that has been out for that long may have been passed as belonging to nobody.
            if entry is not None and parts.clock() - now > self._settle // 2:
                continue
            try:
                after = parts.entries.write(key, stored.version, entry)
            except Outpaced:
                parts.wait(tries)
                continue
            reach(FaultPoint.WORK_COMMITTED)
            return Changed(decision.outcome, after, decision)
        raise TooBusy(self._declared.name, key, TRIES)

    def _write_down(self, decision: Decision, version: int) -> None:
        if decision.dead is not None:
            self._parts.archive.bury(replace(decision.dead, version=version))
            reach(FaultPoint.WORK_BURIED)
        if decision.run is not None and self._declared.history is not None:
            self._parts.archive.record(replace(decision.run, version=version))
            reach(FaultPoint.WORK_RECORDED)

    def _armed(self, entry: Entry | None, now: int, version: int) -> Entry | None:
        """The entry with a hint by which it is found in time, written if it has none yet."""
        if entry is None:
            return None
        wanted = appointment(entry, self._declared.rules)
        if serves(entry.hint, wanted, now):
            return entry
        due_at = self._open_from(max(wanted.at, now), now)
        hint = Hint(
            id=self._parts.new_id(),
            key=entry.key,
            bucket=bucket_of(self._declared.bucket, due_at),
            shard=int(self._parts.entries.hash_of(entry.key), 16) % self._declared.shards,
            priority=wanted.priority,
            at=wanted.at,
            due_at=due_at,
            written=now,
            version=version,
        )
        self._parts.due.put(hint)
        reach(FaultPoint.WORK_HINTED)
        return replace(entry, hint=hint)

    def _open_from(self, due_at: int, now: int) -> int:
        """The first time from ``due_at`` on whose bucket takes hints."""
        period = self._declared.bucket
        while True:
            bucket = bucket_of(period, due_at)
            if self._open.get(bucket, 0) > now:
                return due_at
            if self._parts.registry.open(bucket).state is BucketState.OPEN:
                self._open = {name: end for name, end in self._open.items() if end > now}
                self._open[bucket] = ends(period, bucket)
                return due_at
            # Sealed by a clock that is ahead of this one.
            due_at = ends(period, bucket)
