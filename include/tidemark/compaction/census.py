"""Counts of the verdicts about all keys. The plan shows them, and the proof compares the files with them."""

from collections.abc import Iterable

from msgspec import Struct

from tidemark.compaction.policies.journal_facts import NONE, Facts, Verdict


class PurgedEntity(Struct, frozen=True, array_like=True, order=True):
    """An entity of which the log still has messages from before a purge.

    Attributes:
        t: When the purge was bound (µs).
        id: The id of the purge.
        goes: Whether the plan drops these messages.
    """

    t: int
    id: int
    topic: str
    key: str
    goes: bool


class Census(Struct, frozen=True, array_like=True):
    """Counts of the keys below the watermark.

    Attributes:
        keys: All keys.
        judged: Keys of which messages are dropped.
        gone: Keys of which no message is kept below the watermark.
        as_they_are: Entities that keep everything only because their history is irregular, or a message is
            pinned.
        deletes: Verdicts that depend on a delete, which is kept.
        kept_purges: Verdicts that depend on a purge that is kept.
        gone_purges: Verdicts that depend on a purge that is dropped too.
        chosen: Keys with a last message that is kept; 0 for the policy ``journal``.
        oldest_purged: The entity with the oldest purge that still has older messages in the log.
    """

    keys: int = 0
    judged: int = 0
    gone: int = 0
    as_they_are: int = 0
    deletes: int = 0
    kept_purges: int = 0
    gone_purges: int = 0
    chosen: int = 0
    oldest_purged: PurgedEntity | None = None

    def plus(self, other: "Census") -> "Census":
        """The sum of both, which must be about different keys."""
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
        """The sum of censuses about different keys."""
        total = cls()
        for part in parts:
            total = total.plus(part)
        return total


class JournalCensus:
    """Counts the verdicts about a journal's entities. Mutable, because there are millions of them."""

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
        has_removal = facts.purge_id != NONE or (last is not None and last.delete_id != NONE)
        self._as_they_are += has_removal and verdict.keeps_everything
        if facts.first_id < facts.purge_id:
            found = PurgedEntity(facts.purge_t, facts.purge_id, topic, key, verdict.purge_goes)
            if self._oldest is None or found < self._oldest:
                self._oldest = found

    def note_runs(self, keys: int, judged: int, deleted: int) -> None:
        """Count entities without a purge: all, those of which messages are dropped, those with a delete."""
        self._keys += keys
        self._judged += judged
        self._deletes += judged
        self._as_they_are += deleted - judged

    def conclude(self) -> Census:
        """The counts so far."""
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
