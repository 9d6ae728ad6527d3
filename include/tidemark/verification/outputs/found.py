"""The result of a verification of files or of a topic, as a value, a sentence and the document of ``--json``.

What cannot be proved is counted with the reason, and never called different.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MOST_TOLD = 100
"""How many differences are named; all are counted."""


class OutputProblem(StrEnum):
    """The kinds of differences."""

    MISSING = "missing"
    """A recorded file does not exist, or rows of a binding do not."""
    SIZE = "size"
    CONTENT = "content"
    """A file has the recorded size and other bytes."""
    END = "end"
    """Messages are missing at the end of a partition, where they can be sent again."""
    HOLE = "hole"
    """Messages are missing between others, where they can no longer be inserted."""
    REPLACED = "replaced"
    """The target does not exist, or was created again."""


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """One difference from the log; ``where`` is the file's name, the partition, or the binding's time."""

    problem: OutputProblem
    where: str
    what: str
    first_id: int
    last_id: int

    @property
    def said(self) -> str:
        """The difference as a sentence."""
        return f"{self.where}: {self.what}"

    def to_dict(self) -> dict[str, Any]:
        """The difference in documents and records."""
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
    """How much is compared beyond names, sizes and last ids.

    Attributes:
        sample: How many files are read, or how many messages at the end of every partition are compared.
        everything: All files, or all messages, instead of a sample.
        after: Half of the sample is taken from what was delivered after this id.
        names: Files, or times of bindings, that are always read.
    """

    sample: int = 0
    everything: bool = False
    after: int | None = None
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OutputVerification:
    """The comparison of an output with the log, up to a position.

    Attributes:
        kind: The writer's kind: ``files``, ``kafka`` or ``collection``.
        looked_at: What was compared: ``{"files": 12, "read whole": 2}``.
        not_provable: How many files or partitions cannot be judged, by reason.
    """

    pipeline: str
    writer: str
    kind: str
    position: int
    looked_at: Mapping[str, int]
    differences: tuple[OutputDifference, ...]
    not_provable: Mapping[str, int]
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether there are no differences."""
        return not self.differences

    @property
    def is_replaced(self) -> bool:
        """Whether the target does not exist, or was created again."""
        return any(one.problem is OutputProblem.REPLACED for one in self.differences)

    def of(self, *problems: OutputProblem) -> Sequence[OutputDifference]:
        """The differences of these kinds."""
        return [one for one in self.differences if one.problem in problems]

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        text = (
            ", ".join(f"{count:,} {what}" for what, count in self.looked_at.items()) or "nothing to look at"
        )
        if self.differences:
            text += f"; {len(self.differences):,} different"
        if unproven := sum(self.not_provable.values()):
            text += f"; {unproven:,} not provable"
        return f"{text}; up to id {self.position:,}"

    @property
    def way(self) -> str:
        """What an operator can do about the differences; empty where there are none."""
        name = f"{self.pipeline} {self.writer}"
        if self.is_clean or self.is_replaced:
            return ""
        if self.of(OutputProblem.HOLE):
            return (
                "What is missing between other messages cannot be sent any more: delete the topic, make it "
                f"again, and send everything into it: tidemark offsets rewind {name} -1."
            )
        if self.kind == "collection" and self.of(OutputProblem.CONTENT):
            return (
                "Rows that readers may have read are not written over: add a writer with another name and "
                "another table, which is filled from the log."
            )
        if damaged := self.of(OutputProblem.SIZE, OutputProblem.CONTENT):
            return (
                f"Move {damaged[0].where} away (nothing is overwritten), then have it made again: tidemark "
                f"resume {name}."
            )
        taken = " Where files are meant to be taken away: `reconcile: 0`." if self.kind == "files" else ""
        return f"What is missing is delivered again by: tidemark resume {name}.{taken}"

    def to_dict(self) -> dict[str, Any]:
        """The document that ``--json`` prints and records contain."""
        named = self.differences[:MOST_TOLD]
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "kind": self.kind,
            "position": self.position,
            "clean": self.is_clean,
            "summary": self.summary,
            "looked_at": dict(self.looked_at),
            "total": len(self.differences),
            "differences": [one.to_dict() for one in named],
            "not_provable": dict(self.not_provable),
            "way": self.way,
            "seconds": round(self.seconds, 3),
        }
