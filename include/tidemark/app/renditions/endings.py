"""The two ends of a rendition: given up before readers used it, or retired after they have left it.

An abandoned rendition gets nothing any more and holds no compaction back; its place stays until it is
retired. A retired one has its times forgotten, its consumer ended and its place dropped, in this order; an
interrupted retirement is continued by the same command.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from tidemark.app.renditions.opened import WriterRenditions
from tidemark.app.renditions.plan import RenditionAction, RenditionPlan
from tidemark.app.renditions.removal import ConsumerAndPlace
from tidemark.errors import TidemarkError
from tidemark.outputs.errors import StillActive, TransitionRefused
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import GONE, Rendition, RenditionState, Signature
from tidemark.outputs.model.retention import forget_times_of
from tidemark.outputs.state import lifecycle
from tidemark.outputs.state.retire import retire
from tidemark.writers.removal import DropOption


@dataclass(frozen=True)
class Abandoning:
    """Gives up a rendition that was never active.

    Attributes:
        renditions: The renditions of the writer.
        number: The rendition.
    """

    renditions: WriterRenditions
    number: int

    def plan(self) -> RenditionPlan:
        """What is given up. Read-only."""
        of, output = self.renditions, self.renditions.output
        rendition = output.rendition(self.number)
        is_done = rendition.state is RenditionState.ABANDONED
        refused: TidemarkError | None = None
        if not is_done and not rendition.may_become(RenditionState.ABANDONED):
            wanted = RenditionState.ABANDONED
            refused = TransitionRefused(of.pipeline, of.writer, self.number, rendition.state, wanted)
        state = of.opened.positions.load(of.consumer(self.number))
        position = state.position if state else -1
        lines = (
            f"it is {rendition.state}, at position {position}: nothing is delivered to it any more",
            f"{rendition.place} stays until it is retired: tidemark renditions retire {of.pipeline} "
            f"{of.writer} {self.number}",
            f"readers stay with rendition {output.active.number}",
        )
        details = {"state": rendition.state.value, "position": position, "place": rendition.place}
        return RenditionPlan(
            RenditionAction.ABANDON,
            of.pipeline,
            of.writer,
            self.number,
            lines,
            details,
            refused,
            not is_done,
        )

    def carry_out(self, signed: Signature) -> Output:
        """Give it up. Repeating it changes nothing."""
        return lifecycle.abandon(self.renditions.store, self.number, signed)


@dataclass(frozen=True)
class Retiring:
    """Takes a rendition out of use for good.

    Attributes:
        renditions: The renditions of the writer.
        number: The rendition.
        options: What of its place is dropped that otherwise stays.
    """

    renditions: WriterRenditions
    number: int
    options: Collection[DropOption] = field(default=frozenset())

    def plan(self) -> RenditionPlan:
        """Which times readers lose, and what becomes of the place. Read-only."""
        of, output = self.renditions, self.renditions.output
        rendition, removal = output.rendition(self.number), self._removal("plan")
        refused = self._refusal(output, rendition)
        if refused is None:
            refused = removal.refusal(rendition)
        is_done = rendition.state is RenditionState.DROPPED and not self._drops_later(rendition)
        end = output.end_of_use(self.number)
        lines = [
            "readers never used it" if end is None else f"readers cannot ask for times before {end} any more",
            removal.line(rendition),
        ]
        details = {"state": rendition.state.value, "since": end, "place": rendition.place}
        return RenditionPlan(
            RenditionAction.RETIRE,
            of.pipeline,
            of.writer,
            self.number,
            tuple(lines),
            details,
            None if is_done else refused,
            not is_done,
        )

    def carry_out(self, signed: Signature) -> Output:
        """Retire it; an interrupted retirement is continued.

        Of a rendition that was retired before, and whose place stayed, the place is dropped where the
        options ask for it.
        """
        of, removal = self.renditions, self._removal(f"{signed.who}, {signed.why}")
        rendition = of.output.rendition(self.number)
        if rendition.state is RenditionState.DROPPED:
            removal.drop_place(rendition)
            return of.output
        return retire(of.store, of.readers, self.number, removal, signed)

    def _removal(self, holder: str) -> ConsumerAndPlace:
        return ConsumerAndPlace(self.renditions, holder, self.options)

    def _drops_later(self, rendition: Rendition) -> bool:
        """Whether a place that stayed is dropped now."""
        removal = self._removal("plan")
        found = removal.removal(rendition)
        return found is not None and removal.is_allowed(found) and found.look().is_there

    def _refusal(self, output: Output, rendition: Rendition) -> TidemarkError | None:
        of = self.renditions
        if output.active.number == self.number:
            return StillActive(of.pipeline, of.writer, self.number)
        if rendition.state in GONE:
            return None
        if not rendition.may_become(RenditionState.RETIRING):
            wanted = RenditionState.RETIRING
            return TransitionRefused(of.pipeline, of.writer, self.number, rendition.state, wanted)
        try:
            forget_times_of(of.readers.load(), output, self.number, of.clock())
        except TidemarkError as needed:
            return needed
        return None
