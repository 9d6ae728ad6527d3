"""How far the renditions of a writer have come, and how far readers may therefore read.

What ``upper_of`` needs is read here in the order that it demands: the ``upper`` of the bindings, then the
consumer, then the bindings. In this order a result is too low at worst. Consumers are read through a
protocol, because delivery keeps them. Nothing here delivers.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from tidemark.consensus.objects import Outpaced
from tidemark.faults import FaultPoint, reach
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.outputs.model import handover
from tidemark.outputs.model.evidence import ComparedSide
from tidemark.outputs.model.handover import ConsumerStanding
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.upper import upper_of
from tidemark.outputs.state.output_store import OutputStore


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """The consumer of a rendition at one version; the defaults are those of one that never ran.

    Attributes:
        position: Its position.
        reached: The highest position that it ever had.
        is_gate_open: Whether its gate is open.
        acknowledged: The ids that were acknowledged for it instead of written, ascending.
        code: The digests of the modules that it would run now, by name.
    """

    position: int = NOTHING_YET
    reached: int = NOTHING_YET
    is_gate_open: bool = True
    acknowledged: tuple[int, ...] = ()
    code: Mapping[str, str] = field(default_factory=dict)

    def side(self, number: int) -> ComparedSide:
        """What evidence of a verification is compared with."""
        return ComparedSide(number, self.position, self.acknowledged, self.code)


class Consumers(Protocol):
    """The consumers of one writer's renditions. Every call reads anew."""

    def reached(self, number: int) -> int:
        """``ConsumerState.reached`` of a rendition; cheap, because every delivery asks for it."""

    def state(self, number: int) -> ConsumerState:
        """The whole state of a rendition's consumer."""


@dataclass(frozen=True)
class Progress:
    """The progress of one writer's renditions: the bindings of the log, and what consumers did with them."""

    control: LogControl
    bindings: Bindings
    consumers: Consumers

    def upper(self, number: int) -> int:
        """The first time that a rendition has not finished."""
        bindings_upper = self.control.bindings_head().upper
        return self._upper(bindings_upper, self.consumers.reached(number))

    def standing(self, number: int) -> tuple[ConsumerStanding, ConsumerState]:
        """A rendition's consumer as a handover judges it, and its whole state."""
        bindings_upper = self.control.bindings_head().upper
        state = self.consumers.state(number)
        return ConsumerStanding(self._upper(bindings_upper, state.reached), state.is_gate_open), state

    def upper_beyond(self, number: int, frontier: int) -> int:
        """As ``upper``; ``frontier`` where it is not beyond that, or by nothing that readers miss.

        A handover lets a microsecond pass in which nothing is bound, and needs it: a reader that took it
        would only make it let another one pass, and many readers would do so again and again.

        One read where nothing was bound since, three where the rendition stands still, however far behind.
        """
        bindings_upper = self.control.bindings_head().upper
        if bindings_upper <= frontier:
            return frontier
        reached = self.consumers.reached(number)
        # A frontier that was advanced before is the time of the oldest unfinished binding.
        waiting = self.control.binding_at(frontier)
        if waiting is None and bindings_upper == frontier + 1:
            return frontier
        if waiting is not None and waiting.end > reached:
            return frontier
        return self._upper(bindings_upper, reached)

    def is_bound_at(self, t: int) -> bool:
        """Whether there is a binding at a time."""
        found = next(self.bindings.younger(t - 1), None)
        return found is not None and found.t == t

    def let_time_pass(self, t: int) -> None:
        """Make ``t`` the least time of the next binding, as a bind does that finds nothing new."""
        head = self.control.bindings_head()
        if head.upper < t:
            with suppress(Outpaced):  # a bind was faster, which also lets time pass
                self.control.advance_upper(head, t)

    def _upper(self, bindings_upper: int, reached: int) -> int:
        return upper_of(bindings_upper, reached, self.bindings.after(reached))


def advance_frontier(store: OutputStore, progress: Progress) -> Output:
    """Let readers read all that the active rendition has finished; returns the output as it is then.

    At the end of every delivery, also one that delivered nothing, and by a reader that asks for a time beyond
    the frontier. The upper is committed at the version of the output at which that rendition was active, so
    it is never that of another one. Nothing is committed where the frontier stays; that of a tainted
    rendition does.
    """

    def decide(output: Output) -> Output:
        active = output.active
        if active.taint is not None:
            return output
        upper = progress.upper_beyond(active.number, output.frontier)
        return handover.advance_frontier(output, active.number, upper)

    output = store.change(decide)
    reach(FaultPoint.FRONTIER_ADVANCED)
    return output
