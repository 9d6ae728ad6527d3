"""Verdicts counted: the first ones in full, all of them as numbers, so that a result stays small."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark.journal.difference import Difference
from tidemark.verification.journal.judge import EntityVerdict
from tidemark.verification.journal.provable import Unprovable

MOST_TOLD = 100
"""Differences, and entities that are not provable, that a result names."""


@dataclass(frozen=True, slots=True)
class Unproven:
    """An entity that cannot be judged, and why."""

    topic: str
    key: str
    reason: Unprovable
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        said = {"topic": self.topic, "key": self.key, "reason": self.reason.value}
        return {**said, "detail": self.detail} if self.detail else said


@dataclass(slots=True)
class Counts:
    """Entities of one topic."""

    same: int = 0
    different: int = 0
    not_provable: int = 0


@dataclass(slots=True)
class VerdictTally:
    """What many verdicts come to; travels back from tasks."""

    most: int = MOST_TOLD
    topics: dict[str, Counts] = field(default_factory=dict)
    unprovable: dict[Unprovable, int] = field(default_factory=dict)
    total: int = 0
    """How many differences there are, told or not."""
    differences: list[Difference] = field(default_factory=list)
    unproven: list[Unproven] = field(default_factory=list)

    def note(self, verdict: EntityVerdict | None) -> None:
        """Count one verdict."""
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
        """Count what another one has counted; what is told may then be too much."""
        for topic, counts in other.topics.items():
            ours = self.topics.setdefault(topic, Counts())
            ours.same += counts.same
            ours.different += counts.different
            ours.not_provable += counts.not_provable
        for reason, count in other.unprovable.items():
            self.unprovable[reason] = self.unprovable.get(reason, 0) + count
        self.total += other.total
        self.differences += other.differences
        self.unproven += other.unproven

    @classmethod
    def sum(cls, tallies: Iterable["VerdictTally"], most: int = MOST_TOLD) -> "VerdictTally":
        """All of them as one: what is told is sorted, so that it does not depend on who was first."""
        counted = cls(most)
        for one in tallies:
            counted.add(one)
        counted.topics = dict(sorted(counted.topics.items()))
        counted.unprovable = dict(sorted(counted.unprovable.items()))
        # Stable: the differences of one entity stay in their order.
        counted.differences = sorted(counted.differences, key=lambda one: (one.topic, one.key or ""))[:most]
        counted.unproven = sorted(counted.unproven, key=lambda one: (one.topic, one.key))[:most]
        return counted

    def replaced(
        self, judged_again: Sequence[EntityVerdict], entities: Iterable[tuple[str, str]]
    ) -> "VerdictTally":
        """The same, after the entities whose differences are told were judged once more."""
        rest = VerdictTally(self.most, unprovable=self.unprovable, unproven=self.unproven)
        rest.total = self.total - len(self.differences)
        rest.topics = self.topics
        for topic, _ in entities:
            rest.topics[topic].different -= 1
        again = VerdictTally(self.most)
        for verdict in judged_again:
            again.note(verdict)
        return VerdictTally.sum((rest, again), self.most)
