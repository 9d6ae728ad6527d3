"""Delivers to the two renditions of a handover while their leases are held: no other process does so then.

A handover is at the frontier, which follows the active rendition, and readers advance it at any moment. So
the rendition that enters must have finished a time that the active one has not: ``go_ahead`` delivers the
next binding to it alone. Before that ``level`` brings both to one position, so that they can be compared.
Nothing here compares, hands over, or advances a frontier beyond what the active rendition has.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tidemark.app.rendition_verification import HeldRenditions
from tidemark.delivery.binding_steps import WriteParts, write_parts_here
from tidemark.delivery.deliver import deliver_held
from tidemark.delivery.renditions.output import advance_output
from tidemark.delivery.state.lease import Reload
from tidemark.verification.renditions.comparison import Engine


@dataclass(frozen=True)
class HandoverTools:
    """Where the work of a handover is done; by default in this process.

    Attributes:
        session: Computes the pieces of a comparison.
        write_parts: Writes the parts of a binding.
        reload_from: Makes of a consumer's name the function that reads its state, where parts are written.
    """

    session: Engine | None = None
    write_parts: WriteParts = write_parts_here
    reload_from: Callable[[str], Reload] | None = None


@dataclass(frozen=True)
class HeldDelivery:
    """Deliveries to a rendition and the active one, under leases that the caller holds.

    Attributes:
        held: Both, with their leases.
        tools: Where parts are written.
    """

    held: HeldRenditions
    tools: HandoverTools = field(default_factory=HandoverTools)

    @property
    def active(self) -> int:
        """The other rendition: the one that was active when the leases were taken."""
        return next(one for one in self.held.holds if one != self.held.number)

    @property
    def is_behind(self) -> bool:
        """Whether the rendition lacks what the active one has."""
        return self._position(self.held.number) < self._position(self.active)

    def level(self) -> None:
        """Deliver to the one that is behind what the other one has, as far as its gate allows.

        The rendition that enters lacks what was delivered before the leases were taken. The active one lacks
        what a handover that was killed has delivered to the other one alone. More than one run delivers is
        left to a build: the active one would have to wait for it.
        """
        behind, ahead = sorted((self.held.number, self.active), key=self._position)
        through = self._position(ahead)
        if 0 < through - self._position(behind) <= self.held.opened.pipeline.limits.max_records_per_run:
            self._deliver(behind, through)

    def go_ahead(self) -> bool:
        """Deliver the next published binding to the rendition alone; False where there is none, or where its
        gate is closed."""
        before = self._position(self.held.number)
        self._deliver(self.held.number, before + 1)
        return self._position(self.held.number) > before

    def _position(self, number: int) -> int:
        return self.held.holds[number].state.position

    def _deliver(self, number: int, through: int) -> None:
        held, opened = self.held, self.held.opened
        hold, positions = held.holds[number], opened.positions
        built = held.built(held.store.require(), number)
        name, reload_from = built.consumer, self.tools.reload_from
        with opened.log.held(hold.holder) as log:
            deliver_held(
                built.writer,
                log,
                positions,
                hold,
                self.tools.write_parts,
                through=through,
                reload=reload_from(name) if reload_from else lambda: positions.load(name),
                clock=held.clock,
            )
            if number == self.active:
                advance_output(built.writer, log, positions, held.clock)
