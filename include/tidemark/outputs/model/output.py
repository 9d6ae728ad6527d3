"""The output of one writer: its renditions, and which of them readers use at each time.

Handovers divide time into intervals, each with exactly one rendition; the last one ends at the frontier.
History before the frontier is never rewritten, so an answer for such a time may be cached for ever. A value
that breaks one of these rules cannot be made: ``OutputDamaged`` is raised, also when control rows are read.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Self

from tidemark.outputs.errors import OutputDamaged, Tainted, UnknownRendition
from tidemark.outputs.model.evidence import VerificationEvidence
from tidemark.outputs.model.rendition import GONE, Rendition, RenditionState, Signature
from tidemark.outputs.reader_errors import Forgotten, NotYet


@dataclass(frozen=True, slots=True)
class Handover:
    """The durable record that readers take a rendition from ``h`` on.

    Attributes:
        h: The first time (µs) of the rendition.
        rendition: Its number.
        signed: Who handed over, and why.
        evidence: The verification that allowed it; None for the first rendition, a forced handover and a
            return to an earlier rendition.
        is_forced: Whether an operator forced it without evidence.
        details: What clients of kinds without times need at the switch: the next offsets of both topics.
        soak: How long (µs) the rendition that readers leave is still delivered to; None: as long as the
            pipeline's file says.
    """

    h: int
    rendition: int
    signed: Signature
    evidence: VerificationEvidence | None = None
    is_forced: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    soak: int | None = None

    def to_row(self) -> dict[str, Any]:
        """The control row."""
        evidence = self.evidence.to_row() if self.evidence else None
        row = {"h": self.h, "rendition": self.rendition, "signed": asdict(self.signed), "evidence": evidence}
        return row | {"forced": self.is_forced, "details": dict(self.details), "soak": self.soak}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From a control row."""
        evidence = VerificationEvidence.from_row(row["evidence"]) if row["evidence"] else None
        signed = Signature(**row["signed"])
        forced, details = row["forced"], row["details"]
        return cls(row["h"], row["rendition"], signed, evidence, forced, details, row.get("soak"))


class ActiveInterval(NamedTuple):
    """The times from ``begin`` (included) to ``end`` (excluded), for which readers use one rendition."""

    begin: int
    end: int
    rendition: int


@dataclass(frozen=True, slots=True)
class Output:
    """The renditions of one writer.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        frontier: Readers may ask for times before it. It never goes back.
        next_number: The number of the next rendition.
        renditions: All that were ever declared, in the order of their numbers.
        handovers: In the order of their times.
    """

    pipeline: str
    writer: str
    frontier: int
    next_number: int
    renditions: tuple[Rendition, ...]
    handovers: tuple[Handover, ...]

    def __post_init__(self) -> None:
        if problem := _problem(self):
            raise OutputDamaged(self.pipeline, self.writer, problem)

    @classmethod
    def first(cls, pipeline: str, writer: str, rendition: Rendition) -> Self:
        """The output of a writer with its first rendition, which is active from its ``since`` on."""
        active = replace(rendition, state=RenditionState.ACTIVE)
        handover = Handover(active.since, active.number, active.signed)
        return cls(pipeline, writer, active.since, active.number + 1, (active,), (handover,))

    @property
    def active(self) -> Rendition:
        """The rendition of the newest handover; it may be tainted."""
        return self.rendition(self.handovers[-1].rendition)

    @property
    def intervals(self) -> tuple[ActiveInterval, ...]:
        """All intervals, oldest first; the last one ends at the frontier."""
        ends = [*(one.h for one in self.handovers[1:]), self.frontier]
        return tuple(
            ActiveInterval(one.h, end, one.rendition) for one, end in zip(self.handovers, ends, strict=True)
        )

    @property
    def since(self) -> int:
        """The first time from which on every interval's rendition still has its place. Readers may be
        limited further, see ``Readers.since``."""
        gone = {one.number for one in self.renditions if one.state in GONE}
        ends = (one.end for one in self.intervals if one.rendition in gone)
        return max(ends, default=self.handovers[0].h)

    def rendition(self, number: int) -> Rendition:
        """The rendition with this number; raises ``UnknownRendition``."""
        for one in self.renditions:
            if one.number == number:
                return one
        raise UnknownRendition(self.pipeline, self.writer, number)

    def end_of_use(self, number: int) -> int | None:
        """The end of the last interval of a rendition; None where it was never active."""
        return max((one.end for one in self.intervals if one.rendition == number), default=None)

    def resolve(self, t: int) -> Rendition:
        """The one rendition that is active at ``t``.

        Raises ``NotYet`` from the frontier on, or ``Tainted`` where waiting does not help, and ``Forgotten``
        below ``since``.
        """
        if t >= self.frontier:
            self.refuse_tainted(self.active)
            raise NotYet(self.pipeline, self.writer, t, self.frontier)
        if t < self.since:
            raise Forgotten(self.pipeline, self.writer, t, self.since)
        return self.rendition(next(one.rendition for one in reversed(self.handovers) if one.h <= t))

    def refuse_tainted(self, rendition: Rendition) -> None:
        """Raise ``Tainted`` where the rendition is frozen."""
        if rendition.taint is not None:
            raise Tainted(self.pipeline, self.writer, rendition.number, rendition.taint.t, self.frontier)

    def with_rendition(self, changed: Rendition) -> Self:
        """With one rendition replaced."""
        renditions = tuple(changed if one.number == changed.number else one for one in self.renditions)
        return replace(self, renditions=renditions)


def _problem(output: Output) -> str | None:
    """The first rule that an output breaks, in words; None where it breaks none."""
    numbers = [one.number for one in output.renditions]
    times = [one.h for one in output.handovers]
    places = [one.place for one in output.renditions]
    if not times:
        return "it has no handover, so no rendition is active"
    if numbers != sorted(set(numbers)) or numbers[-1] >= output.next_number:
        return f"the numbers of its renditions are {numbers}, and the next one is {output.next_number}"
    if times != sorted(set(times)):
        return f"the times of its handovers are {times}"
    if len(set(places)) < len(places):
        return f"two of its renditions have one place: {places}"
    if unknown := {one.rendition for one in output.handovers} - set(numbers):
        return f"it was handed over to renditions that do not exist: {sorted(unknown)}"
    # The first rendition has no readable time before its first delivery; a later one has its handover's.
    if output.frontier < times[-1] + (len(times) > 1):
        return f"its frontier is {output.frontier}, but the newest handover was at {times[-1]}"
    tainted = [one for one in output.renditions if one.state is RenditionState.TAINTED]
    if unsaid := [one.number for one in tainted if one.taint is None]:
        return f"renditions {unsaid} are tainted, and nothing says why"
    newest = output.active
    if newest.state not in (RenditionState.ACTIVE, RenditionState.TAINTED):
        return f"rendition {newest.number} of the newest handover is {newest.state}"
    actives = {one.number for one in output.renditions if one.state is RenditionState.ACTIVE}
    if actives - {newest.number}:
        return f"renditions {sorted(actives)} are active, but the newest handover is to {newest.number}"
    return None
