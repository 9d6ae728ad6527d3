"""What the verdicts about all keys amount to: the numbers that a plan shows and a proof starts from."""

from collections.abc import Iterable

from msgspec import Struct

from tidemark.compaction.policies.journal_facts import NONE, Facts, Verdict


class PurgedEntity(Struct, frozen=True, array_like=True, order=True):
    """An entity of which the log still holds something that was purged."""

    t: int
    """When the purge was bound (µs)."""
    id: int
    topic: str
    key: str
    goes: bool
    """Whether the plan takes it out."""


class Census(Struct, frozen=True, array_like=True):
    """The keys below the watermark, in numbers."""

    keys: int = 0
    judged: int = 0
    """Of which something goes."""
    gone: int = 0
    """Of which nothing is left below the watermark."""
    as_they_are: int = 0
    """Entities of which something would go, were their histories regular and nothing of them pinned."""
    deletes: int = 0
    kept_purges: int = 0
    gone_purges: int = 0
    """Verdicts that stand on a delete, and on a purge that stays or goes."""
    chosen: int = 0
    """Last messages of a key that stay; not of a journal."""
    oldest_purged: PurgedEntity | None = None

    def plus(self, other: "Census") -> "Census":
        """Both together; no key may be in both."""
        purged = [one for one in (self.oldest_purged, other.oldest_purged) if one]
        return Census(
            self.keys + other.keys,
            self.judged + other.judged,
            self.gone + other.gone,
            self.as_they_are + other.as_they_are,
            self.deletes + other.deletes,
            self.kept_purges + other.kept_purges,
            self.gone_purges + other.gone_purges,
            self.chosen + other.chosen,
            min(purged, default=None),
        )

    @classmethod
    def sum(cls, parts: Iterable["Census"]) -> "Census":
        """All together."""
        total = cls()
        for part in parts:
            total = total.plus(part)
        return total


class JournalCensus:
    """Counts verdicts one by one; millions of them, so it does not make a census of each."""

    def __init__(self) -> None:
        self._keys = self._judged = self._gone = self._as_they_are = 0
        self._deletes = self._kept_purges = self._gone_purges = 0
        self._oldest: PurgedEntity | None = None

    def note(self, topic: str, key: str, facts: Facts, verdict: Verdict) -> None:
        """Count one entity."""
        self._keys += 1
        self._judged += not verdict.keeps_everything
        self._deletes += verdict.delete_id != NONE
        if verdict.purged_below:
            self._gone_purges += verdict.purge_goes
            self._kept_purges += not verdict.purge_goes
            self._gone += verdict.purge_goes and facts.trail is None and facts.last_pinned == NONE
        last = facts.lead if facts.purge_id == NONE else facts.trail
        could = facts.purge_id != NONE or (last is not None and last.delete_id != NONE)
        self._as_they_are += could and verdict.keeps_everything
        if facts.first_id < facts.purge_id:
            goes = verdict.purge_goes
            found = PurgedEntity(facts.purge_t, facts.purge_id, topic, key, goes)
            if self._oldest is None or found < self._oldest:
                self._oldest = found

    def note_runs(self, keys: int, judged: int, deleted: int) -> None:
        """Count entities without a purge: all, those of which something goes, those that have a delete."""
        self._keys += keys
        self._judged += judged
        self._deletes += judged
        self._as_they_are += deleted - judged

    def conclude(self) -> Census:
        """The numbers."""
        return Census(
            self._keys,
            self._judged,
            self._gone,
            self._as_they_are,
            self._deletes,
            self._kept_purges,
            self._gone_purges,
            0,
            self._oldest,
        )
