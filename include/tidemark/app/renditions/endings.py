"""The two ends of a rendition: given up before readers used it, or retired after they have left it.

An abandoned rendition gets nothing any more and holds no compaction back; its place stays until it is
retired. A retired one has its times forgotten, its consumer ended and its place dropped, in this order; an
interrupted retirement is continued by the same command.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from tidemark.app.renditions.opened import WriterRenditions
from tidemark.app.renditions.plan import RenditionAction, RenditionPlan
from tidemark.app.renditions.removal import ConsumerAndPlace
from tidemark.delivery.renditions.selection import soak_until
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


def left_for_good(of: WriterRenditions) -> list[int]:
    """The renditions that readers have left, and whose time to return to them is over, oldest first."""
    output, declared, now = of.output, of.declared, of.clock()
    ends = {one.number: soak_until(output, one.number, declared) for one in output.renditions}
    return [number for number, until in ends.items() if until is not None and until <= now]


@dataclass(frozen=True)
class RetiringLeft:
    """Retires the rendition that a handover replaced, with every other one that is left for good.

    Rebuilds may overtake each other: each handover then leaves a rendition behind whose time to return to it
    ends later than the next handover.

    Attributes:
        renditions: The renditions of the writer.
        number: The rendition that readers used before the handover; its time is over.
        options: What of their places is dropped that otherwise stays.
    """

    renditions: WriterRenditions
    number: int
    options: Collection[DropOption] = field(default=frozenset())

    @property
    def numbers(self) -> list[int]:
        """All of them, oldest first."""
        return sorted({self.number, *left_for_good(self.renditions)})

    def carry_out(self, signed: Signature, show: Callable[[str], object]) -> dict[int, str]:
        """Retire them; returns their states. One that cannot be retired keeps no other: its error is raised
        at the end, first of all one that a retry may not meet. ``show`` gets the lines of the plans."""
        numbers = self.numbers
        failures = [error for number in numbers if (error := self._retire(number, signed, show))]
        if failures:
            raise next((one for one in failures if not one.needs_person), failures[0])
        output = self.renditions.output
        return {number: output.rendition(number).state.value for number in numbers}

    def _retire(self, number: int, signed: Signature, show: Callable[[str], object]) -> TidemarkError | None:
        """Retire one of them; returns why that is not possible."""
        one = Retiring(self.renditions, number, self.options)
        plan = one.plan()
        for line in (plan.head, *plan.lines):
            show(line)
        try:
            plan.require_possible()  # before readers lose times for a place that has to stay
            one.carry_out(signed)
        except TidemarkError as error:
            show(str(error))
            return error
        return None
