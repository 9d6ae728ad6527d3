"""The registry: a journal's declaration, its pause, its buckets and their marks.

One object a journal, so that every step of a bucket is a compare-and-set. Does not decide when a step is due.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from tidemark.consensus.audit_trail import AuditEntry, AuditFormat
from tidemark.consensus.objects import Change, Consensus, ObjectKey, ObjectKind, Snapshot
from tidemark.consensus.update import Patience, update
from tidemark.work.errors import NotTheSameJournal, UnknownJournal, WorkError
from tidemark.work.model.buckets import Bucket, BucketState
from tidemark.work.model.declaration import WorkDeclaration

ALL = ObjectKey(ObjectKind.WORK_JOURNAL, "*")
"""The object with a row for every journal; no journal can have this name."""
DECLARED, PAUSED, BUCKET, MARK, SCHEMA = "declared", "paused", "bucket/", "mark/", "schema/"
TRIES = 50
MEANING = ("key", "bucket", "shards")
"""The settings that existing entries and hints depend on."""

WORK_AUDIT = AuditFormat()
"""The audit trail of a journal; the action includes the key."""

Lane = tuple[str, int, int]
"""Bucket, shard and priority."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause: no claims are made.

    Attributes:
        who: The operator that paused the journal.
        reason: Why, in the operator's words.
        since: When, in ms.
    """

    who: str
    reason: str
    since: int


@dataclass(frozen=True, slots=True)
class Registered:
    """A journal as it was at one version."""

    declared: WorkDeclaration
    paused: Pause | None
    buckets: Mapping[str, Bucket]
    marks: Mapping[Lane, int]
    """The time of each lane, in ms, before which every hint is settled."""
    version: int


class Registry:
    """The registry object of one journal."""

    def __init__(self, consensus: Consensus, journal: str) -> None:
        self._consensus, self._journal = consensus, journal
        self._key = ObjectKey(ObjectKind.WORK_JOURNAL, journal)
        self._deeds = ObjectKey(ObjectKind.WORK_JOURNAL, f"{journal}/deeds")

    def create(self, declared: WorkDeclaration) -> bool:
        """Creates the journal, or stores its changed declaration; False where nothing changed."""
        known = self._consensus.read(ALL, [self._journal])
        if self._journal not in known.rows:
            self._until_made(ALL, lambda _: Change({self._journal: ""}))
        body = declared.model_dump_json()
        schema = {f"{SCHEMA}{declared.version}": msgspec.json.encode(declared.payload).decode()}

        def change(found: Snapshot) -> Change | None:
            old = found.rows.get(DECLARED)
            if old == body:
                return None
            if old is not None:
                _require_same_meaning(WorkDeclaration.model_validate_json(old), declared)
            return Change({DECLARED: body, **schema})

        return self._until_made(self._key, change)

    def known(self) -> list[str]:
        """The names of all journals in the keyspace."""
        return known_journals(self._consensus)

    def read(self) -> Registered:
        """The stored journal. Raises ``UnknownJournal``."""
        found = self._consensus.whole(self._key)
        if DECLARED not in found.rows:
            raise UnknownJournal(self._journal, self.known())
        paused = found.rows.get(PAUSED)
        return Registered(
            declared=WorkDeclaration.model_validate_json(found.rows[DECLARED]),
            paused=None if paused is None else msgspec.json.decode(paused, type=Pause),
            buckets=_buckets(found),
            marks={_lane(row): int(body) for row, body in found.rows.items() if row.startswith(MARK)},
            version=found.version,
        )

    def is_paused(self) -> bool:
        """Whether the journal is paused. Sees every pause that returned before this call."""
        return PAUSED in self._consensus.committed(self._key, [PAUSED]).rows

    def pause(self, pause: Pause | None) -> None:
        """Pauses the journal; None ends the pause."""

        def change(found: Snapshot) -> Change | None:
            if pause is not None:
                return Change({PAUSED: msgspec.json.encode(pause).decode()})
            return Change(deletes=[PAUSED]) if PAUSED in found.rows else None

        self._until_made(self._key, change)

    def note(self, deed: AuditEntry) -> None:
        """Adds an entry to the audit trail, which is never deleted."""
        row = {f"{deed.at:020}/{deed.what}": WORK_AUDIT.to_json(deed)}
        self._until_made(self._deeds, lambda _: Change(row))

    def deeds(self, limit: int = 20) -> list[AuditEntry]:
        """The newest entries of the audit trail, newest first."""
        rows = self._consensus.scan(self._deeds, "", limit=limit).rows
        return [WORK_AUDIT.from_json(body) for _, body in sorted(rows.items(), reverse=True)]

    def open(self, bucket: str) -> Bucket:
        """The bucket, created where it is missing."""

        def change(found: Snapshot) -> Change | None:
            if f"{BUCKET}{bucket}" in found.rows:
                return None
            return Change(_row(Bucket(bucket, BucketState.OPEN)))

        self._until_made(self._key, change)
        return self.read().buckets[bucket]

    def step(self, bucket: Bucket, state: BucketState, now: int) -> bool:
        """Moves a bucket from the state it was read in; False where another process has moved it."""
        sealed = now if state is BucketState.SEALED else bucket.sealed_at
        after = replace(bucket, state=state, sealed_at=sealed)

        def change(found: Snapshot) -> Change | None:
            if _buckets(found).get(bucket.id) != bucket:
                return None
            marks = [row for row in found.rows if row.startswith(f"{MARK}{bucket.id}/")]
            return Change(_row(after), marks if state is BucketState.DISPOSED else [])

        return self._until_made(self._key, change)

    def forget(self, bucket: Bucket) -> None:
        """Removes a disposed bucket from the registry."""
        self._until_made(
            self._key,
            lambda found: (
                Change(deletes=[f"{BUCKET}{bucket.id}"])
                if _buckets(found).get(bucket.id) == bucket and bucket.state is BucketState.DISPOSED
                else None
            ),
        )

    def keep_marks(self, marks: Mapping[Lane, int]) -> None:
        """Stores marks. A mark never moves back, and disposed buckets have none."""

        def change(found: Snapshot) -> Change | None:
            live = {b.id for b in _buckets(found).values() if b.state is not BucketState.DISPOSED}
            rows = {f"{MARK}{b}/{s}/{p}": mark for (b, s, p), mark in marks.items() if b in live}
            moved = {row: str(mark) for row, mark in rows.items() if mark > int(found.rows.get(row, "0"))}
            return Change(moved) if moved else None

        self._until_made(self._key, change)

    def _until_made(self, key: ObjectKey, change: Callable[[Snapshot], Change | None]) -> bool:
        def decide(found: Snapshot) -> tuple[Change | None, bool]:
            made = change(found)
            return made, made is not None

        problem = f"others changed it {TRIES} times in a row. Nothing was changed. Try again."
        patience = Patience(TRIES, lambda: WorkError(self._journal, problem))
        rows: Sequence[str] | None = [] if key == self._deeds else None
        return update(self._consensus, key, rows, decide, patience=patience)


def known_journals(consensus: Consensus) -> list[str]:
    """The names of all journals in a keyspace's registry."""
    return sorted(consensus.whole(ALL).rows)


def _buckets(found: Snapshot) -> dict[str, Bucket]:
    rows = ((row, body) for row, body in found.rows.items() if row.startswith(BUCKET))
    return {row.removeprefix(BUCKET): msgspec.json.decode(body, type=Bucket) for row, body in rows}


def _row(bucket: Bucket) -> dict[str, str]:
    return {f"{BUCKET}{bucket.id}": msgspec.json.encode(bucket).decode()}


def _lane(row: str) -> Lane:
    bucket, shard, priority = row.removeprefix(MARK).rsplit("/", 2)
    return bucket, int(shard), int(priority)


def _require_same_meaning(old: WorkDeclaration, new: WorkDeclaration) -> None:
    for what in MEANING:
        if getattr(old, what) != getattr(new, what):
            raise NotTheSameJournal(new.name, what, "Change it back, or declare a journal of another name.")
    if new.version < old.version or (new.payload != old.payload and new.version == old.version):
        raise NotTheSameJournal(
            new.name,
            "payload",
            f"Give its columns a version above {old.version}; entries keep their own.",
        )
