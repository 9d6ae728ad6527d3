"""Counts of verdicts. Only the first differences are kept in full, so that a result stays small."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidemark.journal.difference import Difference
from tidemark.verification.journal.judge import EntityVerdict
from tidemark.verification.journal.provable import Unprovable

MOST_TOLD = 100
"""How many differences, and how many entities that cannot be judged, a result names; all are counted."""


class Unproven(NamedTuple):
    """An entity that cannot be judged, and why."""

    topic: str
    key: str
    reason: Unprovable
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The document that ``--json`` prints."""
        document = {"topic": self.topic, "key": self.key, "reason": self.reason.value}
        return {**document, "detail": self.detail} if self.detail else document


@dataclass(slots=True)
class Counts:
    """The numbers of entities of one topic, by result."""

    same: int = 0
    different: int = 0
    not_provable: int = 0


@dataclass(slots=True)
class VerdictTally:
    """The sum of many verdicts. Picklable: tasks return it.

    Attributes:
        most: How many differences, and how many entities that cannot be judged, are kept in full.
        unprovable: The number of entities that cannot be judged, by reason.
        total: The number of all differences, kept or not.
    """

    most: int = MOST_TOLD
    topics: dict[str, Counts] = field(default_factory=dict)
    unprovable: dict[Unprovable, int] = field(default_factory=dict)
    total: int = 0
    differences: list[Difference] = field(default_factory=list)
    unproven: list[Unproven] = field(default_factory=list)

    def note(self, verdict: EntityVerdict | None) -> None:
        """Count one verdict; None, for an unknown entity, counts as nothing."""
        if verdict is None:
            return
        counts = self.topics.setdefault(verdict.topic, Counts())
        if (reason := verdict.unprovable) is not None:
            counts.not_provable += 1
            self.unprovable[reason] = self.unprovable.get(reason, 0) + 1
            if len(self.unproven) < self.most:
                self.unproven.append(Unproven(verdict.topic, verdict.key, reason, verdict.detail))
        elif verdict.total:
            counts.different += 1
            self.total += verdict.total
            self.differences += verdict.differences[: max(self.most - len(self.differences), 0)]
        else:
            counts.same += 1

    def add(self, other: "VerdictTally") -> None:
        """Add another tally. Afterwards more than ``most`` differences may be kept: ``sum`` cuts them."""
        for topic, counts in other.topics.items():
            total = self.topics.setdefault(topic, Counts())
            total.same += counts.same
            total.different += counts.different
            total.not_provable += counts.not_provable
        for reason, count in other.unprovable.items():
            self.unprovable[reason] = self.unprovable.get(reason, 0) + count
        self.total += other.total
        self.differences += other.differences
        self.unproven += other.unproven

    @classmethod
    def sum(cls, tallies: Iterable["VerdictTally"], most: int = MOST_TOLD) -> "VerdictTally":
        """All tallies as one; sorted, so that the result does not depend on the order of tasks."""
        counted = cls(most)
        for one in tallies:
            counted.add(one)
        counted.topics = dict(sorted(counted.topics.items()))
        counted.unprovable = dict(sorted(counted.unprovable.items()))
        # The sort is stable, so the differences of one entity keep their order.
        counted.differences = sorted(counted.differences, key=lambda one: (one.topic, one.key or ""))[:most]
        counted.unproven = sorted(counted.unproven, key=lambda one: (one.topic, one.key))[:most]
        return counted

    def replaced(
        self, judged_again: Sequence[EntityVerdict], entities: Iterable[tuple[str, str]]
    ) -> "VerdictTally":
        """The tally with new verdicts about the entities of the kept differences instead of the old ones."""
        rest = VerdictTally(self.most, unprovable=self.unprovable, unproven=self.unproven)
        rest.total = self.total - len(self.differences)
        rest.topics = self.topics
        for topic, _ in entities:
            rest.topics[topic].different -= 1
        again = VerdictTally(self.most)
        for verdict in judged_again:
            again.note(verdict)
        return VerdictTally.sum((rest, again), self.most)
