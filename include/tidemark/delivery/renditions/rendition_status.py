"""The renditions of a writer as ``tidemark status`` shows them. Read-only."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemark.delivery.renditions.build_progress import BuildProgress, read_build_progress
from tidemark.delivery.renditions.selection import soak_until
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Gate
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import NOTHING_YET
from tidemark.outputs.model.consumer_name import consumer_name
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, RenditionState
from tidemark.outputs.model.upper import upper_of
from tidemark.pipeline.writers import WriterDeclaration

_LIVE = frozenset(
    {RenditionState.BUILDING, RenditionState.VERIFIED, RenditionState.ACTIVE, RenditionState.SUPERSEDED}
)


@dataclass(frozen=True, slots=True)
class RenditionStatus:
    """One rendition.

    Attributes:
        number: Its number.
        state: Its state.
        place: Its place.
        consumer: The name for commands: ``accounts.r2``.
        position: The last id that its consumer has finished; −1 for none.
        lag: How many ids of the log it has not finished.
        gate: ``open`` or ``stopped``; ``ended`` where it delivers nothing any more.
        reason: Why the gate is closed; None where it is open.
        differs: The settings of the file that differ from its own, in words.
        upper: The first time (µs) that it has not finished; None where that does not matter any more.
        since: The first time (µs) that it can answer for.
        soak_until: Until when (µs) it is still delivered to; None where it was not superseded.
        progress: How far its build is; None where it is not being built.
    """

    number: int
    state: str
    place: str
    consumer: str
    position: int
    lag: int
    gate: str
    reason: str | None
    differs: list[str] = field(default_factory=list)
    upper: int | None = None
    since: int = 0
    soak_until: int | None = None
    progress: BuildProgress | None = None


@dataclass(frozen=True)
class StatusSource:
    """What the status of renditions is read from.

    Attributes:
        positions: The consumers of the pipeline.
        bindings: Its bindings.
        bindings_upper: Their ``upper``, read before any position.
        end: The end of the published log.
    """

    positions: Positions
    bindings: Bindings
    bindings_upper: int
    end: int

    def of(
        self, output: Output, declared: WriterDeclaration | None, differs: Sequence[Sequence[str]]
    ) -> list[RenditionStatus]:
        """The status of every rendition; ``differs`` has one entry for each, in their order."""
        pairs = zip(output.renditions, differs, strict=True)
        return [self._one(output, one, declared, list(changed)) for one, changed in pairs]

    def _one(
        self, output: Output, rendition: Rendition, declared: WriterDeclaration | None, differs: list[str]
    ) -> RenditionStatus:
        name = consumer_name(output.writer, rendition.number)
        state, is_live = self.positions.load(name), rendition.state in _LIVE
        position, reached = (state.position, state.reached) if state else (NOTHING_YET, NOTHING_YET)
        gate = Gate.STOPPED if state and state.gate else Gate.OPEN
        is_building = rendition.state is RenditionState.BUILDING
        return RenditionStatus(
            rendition.number,
            str(rendition.state),
            rendition.place,
            f"{output.writer}.r{rendition.number}",
            position,
            self.end - position,
            "ended" if state and state.ended else gate.value,
            state.gate.reason if state and state.gate else None,
            differs,
            upper_of(self.bindings_upper, reached, self.bindings.after(reached)) if is_live else None,
            rendition.since,
            soak_until(output, rendition.number, declared) if declared else None,
            read_build_progress(self.positions, name, self.bindings, self.end) if is_building else None,
        )
