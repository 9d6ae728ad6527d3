"""The one way an entry changes: read, decide, write down what must not be lost, then compare-and-set.

First the hint by which the changed entry will be found again, then the dead letter and the run, then the
entry. A process that dies in between leaves a hint that no entry names, a dead letter that is written again,
or nothing: never an entry that nobody will look at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tidemark.clock import Clock
from tidemark.consensus.objects import Outpaced
from tidemark.consensus.update import Patience, ReadAgain, retry_outpaced
from tidemark.faults import FaultPoint, reach
from tidemark.work.errors import TooBusy
from tidemark.work.model.buckets import BucketState, bucket_of, ends
from tidemark.work.model.decision import Decision, Gone, Outcome
from tidemark.work.model.declaration import WorkDeclaration, milliseconds
from tidemark.work.model.due_times import appointment, serves
from tidemark.work.model.entry import Entry, Hint, LastClaim
from tidemark.work.model.rules import FURTHEST
from tidemark.work.store.due import Archive, Due
from tidemark.work.store.entries import Entries, Stored
from tidemark.work.store.registry import Registry

TRIES = 60
Decide = Callable[[Entry | None, int], Decision]


@dataclass(frozen=True, slots=True)
class Changed:
    """A change that was made.

    Attributes:
        stored: What is there now.
        decision: What was decided.
    """

    stored: Stored
    decision: Decision

    @property
    def outcome(self) -> Outcome:
        """The answer to the call."""
        return self.decision.outcome


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
    copies_warning: Callable[[], str | None] = field(kw_only=True, default=lambda: None)
    """What is wrong with how many copies its keyspace has."""
    wait: Callable[[int], None]
    """Called with the number of tries so far before another: others need a moment to get out of the way."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A change that only has to be made: its hint, if it needs one, is written already."""

    key: str
    decision: Decision
    before: Stored
    entry: Entry | None
    """What is to be there, with its hint."""
    at: int

    @property
    def is_nothing(self) -> bool:
        """Whether everything stays as it is."""
        return self.entry == self.before.entry


def with_last_claim(decision: Decision, before: Stored) -> Entry | None:
    """The decided entry, with the claim that has just ended, or that had when the key was last there."""
    entry = decision.entry
    if entry is None:
        return None
    if (ended := _ended_claim(decision)) is not None:
        return replace(entry, last=ended)
    if before.entry is None and before.gone is not None and before.gone.last is not None:
        return replace(entry, last=before.gone.last)
    return entry


def gone_by(planned: Planned) -> Gone:
    """What is written where an entry was: late callers are told from it."""
    decision, before = planned.decision, planned.before.entry
    how = Outcome.DEAD if decision.dead is not None else decision.outcome
    last = _ended_claim(decision) or (None if before is None else before.last)
    return Gone(planned.at, how, last)


def _ended_claim(decision: Decision) -> LastClaim | None:
    run = decision.run
    return None if run is None else LastClaim(run.token, run.owner, run.ended, run.ending)


class Changing:
    """Changes entries of one journal."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._declared = parts, parts.declared
        self._settle = milliseconds(parts.declared.settle)
        self._open: dict[str, int] = {}
        """Buckets known to be open, and when that is over."""

    def change(self, key: str, decide: Decide, known: Stored | None = None) -> Changed:
        """Decide about an entry and store the result.

        ``known`` saves a read, but is not enough to refuse something, or to give something up.
        """

        def attempt(stored: Stored) -> Changed:
            (planned,) = self.plan({key: stored}, lambda _: decide)
            if stored is known and (planned.is_nothing or planned.decision.dead is not None):
                # A letter is written before the entry changes: not for one that others have changed already.
                stored = self._parts.entries.read(key)
                (planned,) = self.plan({key: stored}, lambda _: decide)
            if planned.is_nothing:
                return Changed(stored, planned.decision)
            return self._commit(planned)

        patience = Patience(TRIES, lambda: TooBusy(self._declared.name, key, TRIES), self._parts.wait)
        return retry_outpaced(lambda: self._parts.entries.read(key), attempt, known=known, patience=patience)

    def plan(self, known: Mapping[str, Stored], decide: Callable[[str], Decide]) -> list[Planned]:
        """What is to become of entries, their hints written in one step; no entry is changed yet."""
        now = self._parts.clock()
        plans, hints = [], []
        for key, stored in known.items():
            decision = decide(key)(stored.entry, now)
            entry = with_last_claim(decision, stored)
            if entry is not None and (hint := self._missing_hint(entry, now, stored.version)) is not None:
                hints.append(hint)
                entry = replace(entry, hint=hint)
            plans.append(Planned(key, decision, stored, entry, now))
        if hints:
            self._parts.due.put(*hints)
            reach(FaultPoint.WORK_HINTED)
        return plans

    def carry_out(self, planned: Planned) -> Changed | None:
        """Make a change that was planned with others; None if it has to be planned anew on its own."""
        try:
            return self._commit(planned)
        except (Outpaced, ReadAgain):
            return None

    def _commit(self, planned: Planned) -> Changed:
        self._write_down(planned.decision, planned.before.version)
        # A hint that has been out for that long may have been passed as belonging to nobody.
        if self._parts.clock() - planned.at > self._settle // 2:
            raise ReadAgain
        after = self._parts.entries.write(
            planned.key, planned.before.version, planned.entry or gone_by(planned)
        )
        reach(FaultPoint.WORK_COMMITTED)
        return Changed(after, planned.decision)

    def _write_down(self, decision: Decision, version: int) -> None:
        if decision.dead is not None:
            self._parts.archive.bury(replace(decision.dead, version=version))
            reach(FaultPoint.WORK_BURIED)
        if decision.run is not None and self._declared.history is not None:
            self._parts.archive.record(replace(decision.run, version=version))
            reach(FaultPoint.WORK_RECORDED)

    def _missing_hint(self, entry: Entry, now: int, version: int) -> Hint | None:
        """A hint by which the entry will be found in time, if it has none yet."""
        wanted = appointment(entry, self._declared.rules)
        if serves(entry.hint, wanted, now):
            return None
        # One that comes too early is replaced then; one that is too far away cannot be written.
        due_at = self._open_from(min(max(wanted.at, now), now + FURTHEST), now)
        return Hint(
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
