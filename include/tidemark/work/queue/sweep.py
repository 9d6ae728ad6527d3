"""The sweep of a journal: applies lapses and expiries, moves marks and buckets, replaces lost hints.

Workers and other sweeps may run concurrently: every process would make the same changes, and commits them by
compare-and-set. A dry run reports what would be done, and changes nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tidemark.faults import FaultPoint, reach
from tidemark.work.model.buckets import Bucket, BucketState, begins, ends, next_state
from tidemark.work.model.decide import Notice, decide
from tidemark.work.model.decision import Decision, Outcome
from tidemark.work.model.declaration import milliseconds
from tidemark.work.model.entry import Entry, Hint
from tidemark.work.queue.due_queue import PAGE, pages
from tidemark.work.queue.entry_updates import Changing, Parts
from tidemark.work.store.due import BEGINNING, Due, Place
from tidemark.work.store.registry import Lane, Registered

AFTER_ALL: str = "\U0010ffff"
OLDEST_HINT = 15 * 86_400_000
"""Age, in ms after its due time, at which a hint is replaced; it lives for ``due.HINT_LIFE``."""
FORGET_AFTER = 35 * 86_400_000
"""Milliseconds for which a disposed bucket stays in the registry."""


@dataclass(slots=True)
class SweptJournal:
    """What a sweep did, or would do in a dry run."""

    journal: str
    executed: bool
    looked_at: int = 0
    """Hints that were checked."""
    lapsed: int = 0
    expired: int = 0
    dead: int = 0
    rearmed: int = 0
    """Entries whose lost hint was replaced."""
    forgotten: int = 0
    """Keys whose trace was deleted."""
    buckets: dict[str, list[str]] = field(default_factory=dict)
    """The states that each bucket has entered, by its id."""


class Sweep:
    """One pass over a journal."""

    def __init__(self, parts: Parts, *, execute: bool = True) -> None:
        self._parts, self._declared, self._execute = parts, parts.declared, execute
        self._rules, self._settle = parts.declared.rules, milliseconds(parts.declared.settle)
        self._changing = Changing(parts)
        self._swept = SweptJournal(parts.declared.name, execute)

    def run(self, keys: Iterable[str] = (), gone: Iterable[str] = ()) -> SweptJournal:
        """Checks every due hint, every bucket, and ``keys``, whose hints may be lost.

        ``gone`` are hashes of keys whose trace may be old enough to delete.
        """
        registered = self._parts.registry.read()
        marks: dict[Lane, int] = {}
        for bucket in sorted(registered.buckets.values(), key=lambda one: one.id):
            self._sweep_bucket(bucket, registered, marks)
        if self._execute and marks:
            self._parts.registry.keep_marks(marks)
        self.reconcile(keys)
        for hashed in gone:
            now = self._parts.clock()
            self._swept.forgotten += self._parts.entries.forget(hashed, now, execute=self._execute)
        return self._swept

    def reconcile(self, keys: Iterable[str]) -> None:
        """Writes a new hint for every entry whose hint is lost."""
        registered = self._parts.registry.read()
        for key in keys:
            entry = self._parts.entries.read(key).entry
            if entry is not None and is_lost(entry, registered, self._parts.due, self._parts.clock()):
                self._swept.rearmed += 1
                self._change(key, lost=entry.hint)

    def _sweep_bucket(self, bucket: Bucket, registered: Registered, marks: dict[Lane, int]) -> None:
        now, period = self._parts.clock(), self._declared.bucket
        is_settled = False
        if bucket.state in (BucketState.OPEN, BucketState.SEALED) and begins(period, bucket.id) <= now:
            is_settled = self._sweep_hints(bucket.id, registered, marks, now)
        while (state := next_state(bucket, period, now, self._settle, is_settled)) is not bucket.state:
            self._swept.buckets.setdefault(bucket.id, []).append(state.value)
            if not self._step(bucket, state, now):
                return
            bucket = replace(bucket, state=state, sealed_at=_sealed_at(bucket, state, now))
        old = bucket.state is BucketState.DISPOSED and now > ends(period, bucket.id) + FORGET_AFTER
        if old and self._execute:
            self._parts.registry.forget(bucket)

    def _step(self, bucket: Bucket, state: BucketState, now: int) -> bool:
        if not self._execute:
            return True
        if state is BucketState.DISPOSED:
            self._parts.due.dispose(bucket.id, range(self._declared.shards), now)
            reach(FaultPoint.WORK_EMPTIED)
        if not self._parts.registry.step(bucket, state, now):
            return False
        reach(FaultPoint.WORK_DISPOSED)
        return True

    def _sweep_hints(self, bucket: str, registered: Registered, marks: dict[Lane, int], now: int) -> bool:
        """Checks every due hint. Returns whether all hints of the bucket are settled."""
        is_settled = now >= ends(self._declared.bucket, bucket)
        for lane in self._lanes(bucket):
            mark = now - self._settle
            for hint in self._hints(lane, registered.marks.get(lane, 0), now):
                if not self._look_at(hint, now):
                    mark, is_settled = min(mark, hint.due_at), False
            marks[lane] = mark
        return is_settled

    def _lanes(self, bucket: str) -> Iterator[Lane]:
        for shard in range(self._declared.shards):
            for priority in self._parts.due.priorities(bucket, shard):
                yield (bucket, shard, priority)

    def _hints(self, lane: Lane, mark: int, now: int) -> Iterator[Hint]:
        beginning: Place = (mark - 1, AFTER_ALL) if mark else BEGINNING
        return pages(self._parts.due, lane, beginning, (now, AFTER_ALL), PAGE)

    def _look_at(self, hint: Hint, now: int) -> bool:
        """Applies expiry or a lapse to a hint's entry. Returns whether the hint is settled afterwards."""
        self._swept.looked_at += 1
        stored = self._parts.entries.read(hint.key)
        if not stored.names(hint):
            return not stored.will_name(hint, now, self._settle)
        after = self._change(hint.key)
        return after is None or after.hint is None or after.hint.id != hint.id

    def _change(self, key: str, lost: Hint | None = None) -> Entry | None:
        """The entry after expiry and lapses are applied and a lost hint is replaced."""

        def noticed(entry: Entry | None, now: int) -> Decision:
            if entry is not None and lost is not None and entry.hint == lost:
                entry = replace(entry, hint=None)
            return decide(entry, Notice(), now, self._rules)

        if not self._execute:
            stored = self._parts.entries.read(key).entry
            decision = noticed(stored, self._parts.clock())
            self._count(decision.outcome)
            return decision.entry
        changed = self._changing.change(key, noticed)
        self._count(changed.outcome)
        return changed.stored.entry

    def _count(self, outcome: Outcome) -> None:
        self._swept.lapsed += outcome is Outcome.LAPSED
        self._swept.expired += outcome is Outcome.EXPIRED
        self._swept.dead += outcome is Outcome.DEAD


def _sealed_at(bucket: Bucket, state: BucketState, now: int) -> int | None:
    return now if state is BucketState.SEALED else bucket.sealed_at


def is_lost(entry: Entry, registered: Registered, due: Due, now: int) -> bool:
    """Whether the entry's hint is lost, so that no process would check the entry."""
    hint = entry.hint
    bucket = registered.buckets.get(hint.bucket) if hint is not None else None
    if hint is None or bucket is None or bucket.state not in (BucketState.OPEN, BucketState.SEALED):
        return True
    # The entry was committed after the hint was settled, or by a process whose clock is behind.
    if hint.due_at < registered.marks.get((hint.bucket, hint.shard, hint.priority), 0):
        return True
    # Cassandra deletes a hint some time after it was due.
    return now - hint.due_at > OLDEST_HINT or not due.holds(hint)
