"""Delivers to one rendition until it has everything that is published: a build, and what a handover needs.

It is ordinary delivery to the consumer of the rendition: killed, it goes on where the last binding was
finished. A message that fails closes the gate of this rendition alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.app.renditions.opened import WriterRenditions
from tidemark.app.shutdown import AskedToStop
from tidemark.delivery.binding_steps import WriteParts, write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.errors import TidemarkError, with_fields
from tidemark.log.model.binding import NOTHING_YET
from tidemark.writers.renditions import build_rendition


@with_fields
class BuildStopped(TidemarkError):
    """The gate of a rendition closed while it was built, or was closed."""

    needs_person = True

    pipeline: str
    writer: str
    number: int
    consumer: str
    reason: str

    text = (
        "{pipeline}/{writer}: the gate of rendition {number} is closed: {reason}. Readers stay where they "
        "are; what was finished is kept. See what to do: tidemark gate show {pipeline} {consumer}; then run "
        "the same command again"
    )


@with_fields
class BuildEnded(TidemarkError):
    """A rendition was given up or retired while it was built."""

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

    def to_dict(self) -> Mapping[str, Any]:
        """The result of a command or a task."""
        return {
            "number": self.number,
            "position": self.position,
            "written": self.written,
            "filtered": self.filtered,
        }


def catch_up(
    of: WriterRenditions,
    number: int,
    holder: str,
    show: Callable[[str], object],
    *,
    write_parts: WriteParts = write_parts_here,
    is_stopping: Callable[[], bool] = lambda: False,
) -> CaughtUp:
    """Deliver to a rendition up to the end of the log, at most ``limits.max_records_per_run`` at once.

    ``show`` gets a line of progress after each part.
    """
    opened, pipeline = of.opened, of.opened.pipeline
    built = build_rendition(pipeline, opened.connections, of.writer, of.output.rendition(number))
    written = filtered = 0
    with opened.log.held(holder) as log:
        while True:
            done = deliver_to(
                built.writer,
                log,
                opened.positions,
                holder,
                write_parts,
                limit=pipeline.limits.max_records_per_run,
                reload=lambda: opened.positions.load(built.consumer),
                clock=of.clock,
                is_stopping=is_stopping,
                start=NOTHING_YET,
            )
            written, filtered = written + done.total.written, filtered + done.total.filtered
            if done.is_ended:
                raise BuildEnded(of.pipeline, of.writer, number)
            if done.gate is not None:
                reason = f"{done.gate.where}: {done.gate.reason.rstrip('.')}"
                raise BuildStopped(of.pipeline, of.writer, number, built.consumer, reason)
            show(f"{of.pipeline}/{of.writer}: rendition {number} is at id {done.position:,} of {log.end:,}")
            log = log.reopened()
            if done.position >= log.end:
                return CaughtUp(number, done.position, written, filtered)
            if is_stopping():
                raise AskedToStop(holder)
