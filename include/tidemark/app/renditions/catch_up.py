"""Delivers to one rendition until it has everything that is published: a build, and what a handover needs.

It is ordinary delivery to the consumer of the rendition: killed, it goes on where the last binding was
finished. A message that fails closes the gate of this rendition alone. Also a rendition whose time to return
to it is over may be delivered to again, before a rollback.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidemark.app.build import Build
from tidemark.app.consumers import DeliveredConsumer, RunConsumers
from tidemark.app.renditions.estimate import size_of
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.app.renditions.plan import RenditionAction, RenditionPlan
from tidemark.app.shutdown import AskedToStop
from tidemark.delivery.binding_steps import WriteParts, write_parts_here
from tidemark.delivery.deliver import Delivered, deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.output import GIVEN_UP
from tidemark.delivery.renditions.selection import ConsumerChoice
from tidemark.delivery.state.lease import Reload
from tidemark.errors import TidemarkError, with_fields
from tidemark.log.model.binding import NOTHING_YET
from tidemark.writers.renditions import build_rendition


@with_fields
class GateClosed(TidemarkError):
    """The gate of a rendition closed while it was delivered to, or was closed."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    reason: str

    text = (
        "{pipeline}/{writer}: the gate of rendition {number} is closed: {reason}. Readers stay where they "
        "are; what was finished is kept. See what to do: tidemark gate show {pipeline} {writer}.r{number}; "
        "then run the same command again"
    )


@with_fields
class NotDeliveredTo(TidemarkError):
    """A rendition was given up or retired, before or while it was delivered to."""

    needs_person = True

    pipeline: str
    writer: str
    number: int

    text = (
        "{pipeline}/{writer}: rendition {number} was given up or retired, so nothing is delivered to it any "
        "more. Look at its history: tidemark renditions {pipeline} {writer}"
    )


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """A rendition that has everything that was published when it was last asked.

    Attributes:
        number: The rendition.
        position: Its position.
        written: How many messages were written.
        filtered: How many were left out by the writer's settings.
    """

    number: int
    position: int
    written: int
    filtered: int

    def to_dict(self) -> dict[str, Any]:
        """The result of a command or a task."""
        return {
            "number": self.number,
            "position": self.position,
            "written": self.written,
            "filtered": self.filtered,
        }


@dataclass(frozen=True)
class CatchingUp:
    """A delivery to one rendition, with its own settings, up to the end of the log.

    Attributes:
        renditions: The renditions of the writer.
        number: The rendition.
    """

    renditions: WriterRenditions
    number: int

    def plan(self) -> RenditionPlan:
        """How much it lacks. Read-only."""
        of, output = self.renditions, self.renditions.output
        rendition, positions = output.rendition(self.number), of.opened.positions
        state = positions.load(of.consumer(self.number))
        history = positions.history(of.consumer(output.active.number))
        size = size_of(of.opened.log, state.position if state else NOTHING_YET, history)
        refused: TidemarkError | None = None
        if rendition.state in GIVEN_UP:
            refused = NotDeliveredTo(of.pipeline, of.writer, self.number)
        lines = (
            f"it is {rendition.state} and goes on with its own settings: {rendition.place}",
            f"delivers: {size}",
            f"readers stay with rendition {output.active.number}",
        )
        details = {"place": rendition.place, "continues": True, "active": output.active.number}
        document = {**details, **size.to_dict()}
        action = RenditionAction.BUILD
        return RenditionPlan(action, of.pipeline, of.writer, self.number, lines, document, refused)

    def carry_out(
        self,
        holder: str,
        write_parts: WriteParts = write_parts_here,
        is_stopping: Callable[[], bool] = lambda: False,
        reload_from: Callable[[str], Reload] | None = None,
    ) -> CaughtUp:
        """Deliver to it until it has everything. Raises ``GateClosed`` and ``NotDeliveredTo``.

        ``reload_from`` makes of a consumer's name the function that reads its state: one that can be sent to
        tasks, where tasks write.
        """
        of, opened, number = self.renditions, self.renditions.opened, self.number
        rendition = of.output.rendition(number)
        built = build_rendition(opened.pipeline, opened.connections, of.writer, rendition)
        consumer = DeliveredConsumer(ConsumerChoice(of.declared, rendition, is_active=False), built)
        start = RunConsumers(opened.pipeline, opened.connections, opened.positions).start
        reload = reload_from(built.consumer) if reload_from else lambda: opened.positions.load(built.consumer)

        def deliver_once(log: PublishedLog) -> Delivered:
            return deliver_to(
                built.writer,
                log,
                opened.positions,
                holder,
                write_parts,
                limit=opened.pipeline.limits.max_records_per_run,
                reload=reload,
                clock=of.clock,
                is_stopping=is_stopping,
                start=start(consumer, log),
            )

        with opened.log.held(holder) as log:
            done = Build(built.consumer, log, opened.positions, is_stopping).until_caught_up(deliver_once)
        if done.is_ended:
            raise NotDeliveredTo(of.pipeline, of.writer, number)
        if done.gate is not None:
            reason = f"{done.gate.where}: {done.gate.reason.rstrip('.')}"
            raise GateClosed(of.pipeline, of.writer, number, reason)
        if is_stopping():
            raise AskedToStop(holder)
        return CaughtUp(number, done.position, done.total.written, done.total.filtered)
