"""The only way an entry changes: read, decide, record what must not be lost, then compare-and-set.

The hint of the changed entry is written first, then the dead letter and the history row, then the entry. A
crash in between leaves an unused hint or a dead letter that will be written again, never an entry without a
hint.
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
        stored: The stored value afterwards.
        decision: The decision that was carried out.
    """

    stored: Stored
    decision: Decision

    @property
    def outcome(self) -> Outcome:
        """The outcome that the caller gets."""
        return self.decision.outcome


@dataclass(frozen=True, slots=True)
class Parts:
    """One journal's tables and clock."""

    declared: WorkDeclaration
    registry: Registry
    entries: Entries
    due: Due
    archive: Archive
    clock: Clock
    new_id: Callable[[], str]
    """Returns a unique id for a hint."""
    copies_warning: Callable[[], str | None] = field(kw_only=True, default=lambda: None)
    """Returns a warning where the keyspace has too few copies; else None."""
    wait: Callable[[int], None]
    """Backs off before a retry; called with the number of attempts so far."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A decided change that is not committed yet. Its hint, if it needs one, is written."""

    key: str
    decision: Decision
    before: Stored
    entry: Entry | None
    """The entry to store, with its hint."""
    at: int
    """When the change was decided, in ms."""

    @property
    def is_nothing(self) -> bool:
        """Whether the stored entry stays as it is."""
        return self.entry == self.before.entry


def with_last_claim(decision: Decision, before: Stored) -> Entry | None:
    """The decided entry with its newest ended claim; for a new entry, that of the key's previous one."""
    entry = decision.entry
    if entry is None:
        return None
    if (ended := _ended_claim(decision)) is not None:
        return replace(entry, last=ended)
    if before.entry is None and before.gone is not None and before.gone.last is not None:
        return replace(entry, last=before.gone.last)
    return entry


def gone_by(planned: Planned) -> Gone:
    """The trace of a removed entry, from which late callers get the cause of ``ClaimLost``."""
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
        """Buckets known to be open, and when their period ends."""

    def change(self, key: str, decide: Decide, known: Stored | None = None) -> Changed:
        """Decides about an entry and stores the result. Raises ``TooBusy``.

        ``known`` is an earlier read, and saves one. It is read again before a refusal or a dead letter.
        """

        def attempt(stored: Stored) -> Changed:
            (planned,) = self.plan({key: stored}, lambda _: decide)
            if stored is known and (planned.is_nothing or planned.decision.dead is not None):
                # A dead letter is written before the entry changes, so the entry must be the newest one.
                stored = self._parts.entries.read(key)
                (planned,) = self.plan({key: stored}, lambda _: decide)
            if planned.is_nothing:
                return Changed(stored, planned.decision)
            return self._commit(planned)

        patience = Patience(TRIES, lambda: TooBusy(self._declared.name, key, TRIES), self._parts.wait)
        return retry_outpaced(lambda: self._parts.entries.read(key), attempt, known=known, patience=patience)

    def plan(self, known: Mapping[str, Stored], decide: Callable[[str], Decide]) -> list[Planned]:
        """Decides about entries and writes their hints in one step. No entry is changed yet."""
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
        """Commits a planned change; None where another process was faster, and it must be planned again."""
        try:
            return self._commit(planned)
        except (Outpaced, ReadAgain):
            return None

    def _commit(self, planned: Planned) -> Changed:
        self._write_down(planned.decision, planned.before.version)
        # Later than that, readers may have settled the hint, because no entry referred to it.
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
        """A new hint for the entry; None where its present one suffices."""
        wanted = appointment(entry, self._declared.rules)
        if serves(entry.hint, wanted, now):
            return None
        # Cassandra cannot store a hint further ahead. An earlier one is replaced when it is due.
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
        """The earliest time from ``due_at`` on whose bucket is open."""
        period = self._declared.bucket
        while True:
            bucket = bucket_of(period, due_at)
            if self._open.get(bucket, 0) > now:
                return due_at
            if self._parts.registry.open(bucket).state is BucketState.OPEN:
                self._open = {name: end for name, end in self._open.items() if end > now}
                self._open[bucket] = ends(period, bucket)
                return due_at
            # A process whose clock is ahead has sealed the bucket.
            due_at = ends(period, bucket)
