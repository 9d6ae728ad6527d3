"""What a verification found: a value that people, programs and Airflow's tasks can look at."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.journal.difference import Difference
from tidemark.verification.basis import Basis
from tidemark.verification.journal.provable import Unprovable
from tidemark.verification.tally import Counts, Unproven, VerdictTally


@dataclass(frozen=True, slots=True)
class Verification:
    """A writer's tables against the log, up to a position."""

    pipeline: str
    writer: str
    keyspace: str
    position: int
    topics: Mapping[str, Counts]
    not_provable: Mapping[Unprovable, int]
    differences: tuple[Difference, ...]
    """The first ones, pointers included."""
    total: int
    """How many differences there are, told or not."""
    unproven: tuple[Unproven, ...]
    """The first ones."""
    pointers: int
    """How many pointers were looked at."""
    pointers_wrong: int
    seconds: float = 0.0
    gap: str = ""
    """Why tables rebuilt from the log would be without something; empty where the log is whole."""

    @property
    def same(self) -> int:
        """How many entities are as the log says."""
        return sum(counts.same for counts in self.topics.values())

    @property
    def different(self) -> int:
        """How many are not."""
        return sum(counts.different for counts in self.topics.values())

    @property
    def entities(self) -> int:
        """How many entities were looked at."""
        return self.same + self.different + sum(self.not_provable.values())

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong; what cannot be proved is not wrong."""
        return not self.total

    @property
    def summary(self) -> str:
        """One sentence."""
        said = f"{self.entities:,} entit{'y' if self.entities == 1 else 'ies'}: {self.same:,} as the log says"
        if self.different:
            said += f", {self.different:,} different"
        if unproven := sum(self.not_provable.values()):
            said += f", {unproven:,} not provable"
        wrong = f", {self.pointers_wrong} wrong" if self.pointers_wrong else ""
        pointers = f"{self.pointers:,} pointer{'' if self.pointers == 1 else 's'}{wrong}"
        return f"{said}; {pointers}; up to id {self.position:,}"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json`` and of task results."""
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
    """The result of counted verdicts and of the pointers that are wrong."""
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
