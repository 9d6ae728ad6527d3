"""What was found of an output that is no journal: a folder of files, or a topic.

A value for people, for programs and for the records of reconciliations. What cannot be proved is counted and
never called wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MOST_TOLD = 100
"""How many differences are told; all are counted."""


class OutputProblem(StrEnum):
    """What is different."""

    MISSING = "missing"
    """A file that was made is not there."""
    SIZE = "size"
    CONTENT = "content"
    """A file is there with other bytes."""
    END = "end"
    """Messages are missing at the end of a partition: they can be sent again."""
    HOLE = "hole"
    """Messages are missing between others: nothing can be put there any more."""
    REPLACED = "replaced"
    """The target is another one, or not there."""


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """One thing that is not as the log says."""

    problem: OutputProblem
    where: str
    """The file's name, or the partition."""
    what: str
    first_id: int
    last_id: int

    @property
    def said(self) -> str:
        """One sentence."""
        return f"{self.where}: {self.what}"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json`` and of records."""
        return {
            "kind": self.problem.value,
            "where": self.where,
            "what": self.what,
            "said": self.said,
            "first_id": self.first_id,
            "last_id": self.last_id,
        }


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is looked at beyond what is cheap."""

    sample: int = 0
    """So many files are read whole; so many messages at the end of every partition are compared."""
    everything: bool = False
    after: int | None = None
    """What was delivered after this id comes first."""
    names: frozenset[str] = frozenset()
    """These files are read in any case."""


@dataclass(frozen=True, slots=True)
class OutputVerification:
    """An output against the log, up to a position."""

    pipeline: str
    writer: str
    kind: str
    position: int
    looked_at: Mapping[str, int] = field(default_factory=dict)
    """How much of what, in words: ``{"files": 12, "files read whole": 2}``."""
    differences: tuple[OutputDifference, ...] = ()
    not_provable: Mapping[str, int] = field(default_factory=dict)
    """How much cannot be judged, and why."""
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.differences

    @property
    def is_replaced(self) -> bool:
        """Whether the target is another one."""
        return any(one.problem is OutputProblem.REPLACED for one in self.differences)

    def of(self, *problems: OutputProblem) -> Sequence[OutputDifference]:
        """The differences of these kinds."""
        return [one for one in self.differences if one.problem in problems]

    @property
    def summary(self) -> str:
        """One sentence."""
        said = (
            ", ".join(f"{count:,} {what}" for what, count in self.looked_at.items()) or "nothing to look at"
        )
        if self.differences:
            said += f"; {len(self.differences):,} different"
        if unproven := sum(self.not_provable.values()):
            said += f"; {unproven:,} not provable"
        return f"{said}; up to id {self.position:,}"

    @property
    def way(self) -> str:
        """What to do about it; empty where there is nothing to do."""
        name = f"{self.pipeline} {self.writer}"
        if self.is_clean or self.is_replaced:
            return ""
        if self.of(OutputProblem.HOLE):
            return (
                "What is missing between other messages cannot be sent any more: delete the topic, make it "
                f"again, and send everything into it: tidemark offsets rewind {name} -1."
            )
        if damaged := self.of(OutputProblem.SIZE, OutputProblem.CONTENT):
            return (
                f"Move {damaged[0].where} away (nothing is overwritten), then have it made again: tidemark "
                f"resume {name}."
            )
        taken = " Where files are meant to be taken away: `reconcile: 0`." if self.kind == "files" else ""
        return f"What is missing is delivered again by: tidemark resume {name}.{taken}"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json`` and of records."""
        told = self.differences[:MOST_TOLD]
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "kind": self.kind,
            "position": self.position,
            "clean": self.is_clean,
            "summary": self.summary,
            "looked_at": dict(self.looked_at),
            "total": len(self.differences),
            "differences": [one.to_dict() for one in told],
            "not_provable": dict(self.not_provable),
            "way": self.way,
            "seconds": round(self.seconds, 3),
        }
