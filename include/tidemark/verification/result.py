"""The result of a verification of a journal, as a value, as a sentence and as the document of ``--json``."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.journal.difference import Difference
from tidemark.verification.basis import Basis
from tidemark.verification.journal.provable import Unprovable
from tidemark.verification.tally import Counts, Unproven, VerdictTally


@dataclass(frozen=True, slots=True)
class Verification:
    """The comparison of a writer's tables with the log, up to a position.

    Attributes:
        not_provable: The number of entities that cannot be judged, by reason.
        differences: The first ones, those of pointers included; ``total`` counts all.
        unproven: The first entities that cannot be judged.
        pointers: The number of pointers that were compared.
        gap: What the log lacks, so that tables rebuilt from it would lack it too; empty for a complete log.
    """

    pipeline: str
    writer: str
    keyspace: str
    position: int
    topics: Mapping[str, Counts]
    not_provable: Mapping[Unprovable, int]
    differences: tuple[Difference, ...]
    total: int
    unproven: tuple[Unproven, ...]
    pointers: int
    pointers_wrong: int
    seconds: float = 0.0
    gap: str = ""

    @property
    def same(self) -> int:
        """The number of entities that match the log."""
        return sum(counts.same for counts in self.topics.values())

    @property
    def different(self) -> int:
        """The number of entities that do not match the log."""
        return sum(counts.different for counts in self.topics.values())

    @property
    def entities(self) -> int:
        """The number of entities that were verified, those that cannot be judged included."""
        return self.same + self.different + sum(self.not_provable.values())

    @property
    def is_clean(self) -> bool:
        """Whether there are no differences; an entity that cannot be judged is none."""
        return not self.total

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        text = f"{self.entities:,} entit{'y' if self.entities == 1 else 'ies'}: {self.same:,} as the log says"
        if self.different:
            text += f", {self.different:,} different"
        if unproven := sum(self.not_provable.values()):
            text += f", {unproven:,} not provable"
        wrong = f", {self.pointers_wrong} wrong" if self.pointers_wrong else ""
        pointers = f"{self.pointers:,} pointer{'' if self.pointers == 1 else 's'}{wrong}"
        return f"{text}; {pointers}; up to id {self.position:,}"

    def to_dict(self) -> dict[str, Any]:
        """The document that ``--json`` prints and tasks return."""
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "keyspace": self.keyspace,
            "position": self.position,
            "clean": self.is_clean,
            "entities": self.entities,
            "same": self.same,
            "different": self.different,
            "topics": {topic: asdict(counts) for topic, counts in self.topics.items()},
            "not_provable": {reason.value: count for reason, count in self.not_provable.items()},
            "pointers": {"checked": self.pointers, "wrong": self.pointers_wrong},
            "total": self.total,
            "differences": [one.to_dict() for one in self.differences],
            "unproven": [one.to_dict() for one in self.unproven],
            "rebuild": {"possible": not self.gap, "because": self.gap or None},
            "seconds": round(self.seconds, 3),
        }


def verification_of(
    basis: Basis, tally: VerdictTally, wrong: list[Difference], seconds: float
) -> Verification:
    """The result, from the counted verdicts and the differences of pointers."""
    return Verification(
        basis.pipeline,
        basis.writer,
        basis.keyspace,
        basis.position,
        tally.topics,
        tally.unprovable,
        (*wrong, *tally.differences)[: max(tally.most, len(wrong))],
        tally.total + len(wrong),
        tuple(tally.unproven),
        len(basis.pointers),
        len(wrong),
        seconds,
        basis.gap,
    )
