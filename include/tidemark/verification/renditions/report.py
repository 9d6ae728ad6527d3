"""The result of comparing a rendition with the active one: a value, lines for people, and a document.

It says everything that the evidence for a handover says, and what an operator needs to judge it: how many
rows differ and how, which rule explains them, and a few of each. Compares nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tidemark.outputs.model.evidence import ComparedSide, VerificationEvidence, VerificationMode

MOST_NAMED = 20
"""The most ids that a line names."""


@dataclass(frozen=True, slots=True)
class RuleLine:
    """What became of one declared rule.

    Attributes:
        rule: The rule in words.
        reason: Why the difference is meant.
        matched: How many rows match it.
        at_most: How many may; None for any number.
    """

    rule: str
    reason: str
    matched: int
    at_most: int | None = None

    @property
    def is_exceeded(self) -> bool:
        """Whether more rows match it than may."""
        return self.at_most is not None and self.matched > self.at_most

    @property
    def said(self) -> str:
        """The outcome as a sentence."""
        if not self.matched:
            return f"matched nothing: {self.rule} ({self.reason})"
        more = f", {self.matched - self.at_most:,} too many" if self.at_most and self.is_exceeded else ""
        more = f", {self.matched:,} too many" if self.at_most == 0 and self.is_exceeded else more
        return f"{self.matched:,} explained by {self.rule} ({self.reason}){more}"


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """Some rows that differ in the same way and are explained by the same rules.

    Attributes:
        change: ``missing``, ``added`` or ``changed``.
        rules: The numbers of the rules in the report, from 0 on; empty for unexplained rows.
        said: The rows, a sentence each.
    """

    change: str
    rules: tuple[int, ...]
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenditionReport:
    """One verification of a rendition.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        kind: The writer's kind.
        mode: How the renditions were compared.
        t: The last time (µs) that was compared.
        at: When the comparison ended, in µs.
        candidate: The rendition that was verified.
        active: The active rendition.
        looked_at: What was compared: ``{"rows": 12, "bindings": 2}``.
        changes: How many rows differ, by how they differ.
        columns: How many rows differ in a column.
        differences: How many rows differ.
        explained: How many of them the rules explain.
        rules: What became of each rule.
        samples: Some of the rows that differ.
        only_acknowledged: The ids that were acknowledged for one of the renditions only, by its number.
        not_compared: How much could not be compared, by reason.
        seconds: How long it took.
    """

    pipeline: str
    writer: str
    kind: str
    mode: VerificationMode
    t: int
    at: int
    candidate: ComparedSide
    active: ComparedSide
    looked_at: Mapping[str, int]
    changes: Mapping[str, int]
    columns: Mapping[str, int]
    differences: int
    explained: int
    rules: tuple[RuleLine, ...]
    samples: tuple[SampleGroup, ...]
    only_acknowledged: Mapping[int, tuple[int, ...]]
    not_compared: Mapping[str, int]
    seconds: float

    @property
    def number(self) -> int:
        """The rendition that was verified."""
        return self.candidate.number

    @property
    def is_clean(self) -> bool:
        """Whether readers may be handed over to the rendition."""
        return self.evidence().is_clean

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        sides = f"rendition {self.number} compared with {self.active.number} ({self.mode})"
        looked = ", ".join(f"{count:,} {what}" for what, count in self.looked_at.items()) or "nothing there"
        if not self.differences:
            return f"{sides}: the same; {looked}; up to id {self.active.position:,}"
        found = ", ".join(f"{count:,} {change}" for change, count in self.changes.items())
        judged = f"{self.differences:,} different ({found}), {self.explained:,} explained"
        return f"{sides}: {judged}; {looked}; up to id {self.active.position:,}"

    @property
    def way(self) -> str:
        """What an operator can do; empty for a clean report."""
        if self.is_clean:
            return ""
        name = f"{self.pipeline} {self.writer} {self.number}"
        if self.mode is VerificationMode.EXACT:
            return (
                "The renditions are not the same. Where the differences are meant, declare them as `expect:` "
                f"rules of the writer, then: tidemark renditions verify {name} --mode explained"
            )
        left = self.differences - self.explained
        return (
            f"{left:,} of {self.differences:,} differences not explained. Where they are meant, add "
            "`expect:` rules; where not, mend the transform and build the next rendition."
        )

    def evidence(self) -> VerificationEvidence:
        """What a handover is based on."""
        counts = self.differences, self.explained
        return VerificationEvidence(self.mode, self.t, self.candidate, self.active, *counts)

    def to_lines(self) -> Iterator[str]:
        """The report as lines for people."""
        yield f"{self.pipeline}/{self.writer}: {self.summary}"
        for one in self.rules:
            yield f"  {one.said}"
        for group in self.samples:
            by = " and ".join(self.rules[number].reason for number in group.rules)
            yield f"  {group.change}, {f'explained ({by})' if by else 'not explained'}:"
            yield from (f"    {said}" for said in group.said)
        for number, ids in self.only_acknowledged.items():
            named = ", ".join(map(str, ids[:MOST_NAMED])) + (", …" if len(ids) > MOST_NAMED else "")
            yield f"  acknowledged for rendition {number} only: id {named}"
        for reason, count in self.not_compared.items():
            yield f"  not compared: {count:,} {reason}"
        if self.way:
            yield self.way

    def to_dict(self) -> dict[str, Any]:
        """The report as a document: what ``--json`` prints, and what is stored."""
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "kind": self.kind,
            "mode": self.mode.value,
            "clean": self.is_clean,
            "summary": self.summary,
            "t": self.t,
            "at": self.at,
            "candidate": _side(self.candidate),
            "active": _side(self.active),
            "looked_at": dict(self.looked_at),
            "changes": dict(self.changes),
            "columns": dict(self.columns),
            "differences": self.differences,
            "explained": self.explained,
            "rules": [
                {"rule": one.rule, "reason": one.reason, "matched": one.matched, "at_most": one.at_most}
                for one in self.rules
            ],
            "samples": [
                {"change": one.change, "rules": list(one.rules), "said": list(one.said)}
                for one in self.samples
            ],
            "only_acknowledged": {str(number): list(ids) for number, ids in self.only_acknowledged.items()},
            "not_compared": dict(self.not_compared),
            "way": self.way,
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """From the stored document."""
        derived = ("clean", "summary", "way")
        fields = {name: value for name, value in document.items() if name not in derived}
        return cls(
            **{
                **fields,
                "mode": VerificationMode(document["mode"]),
                "candidate": ComparedSide.from_row(document["candidate"]),
                "active": ComparedSide.from_row(document["active"]),
                "rules": tuple(RuleLine(**one) for one in document["rules"]),
                "samples": tuple(
                    SampleGroup(one["change"], tuple(one["rules"]), tuple(one["said"]))
                    for one in document["samples"]
                ),
                "only_acknowledged": {
                    int(number): tuple(ids) for number, ids in document["only_acknowledged"].items()
                },
            }
        )


def _side(side: ComparedSide) -> dict[str, Any]:
    return {
        "number": side.number,
        "position": side.position,
        "acknowledged": list(side.acknowledged),
        "code": dict(side.code or {}),
    }
