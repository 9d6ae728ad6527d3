"""How a writer becomes known: first to the log, which then waits for it, and only then in its own right.

In this order no compaction can pass a writer over, whoever dies in between: one that the log knows and that
is registered nowhere counts as one that has finished with nothing. A log that somebody has for a compaction
takes no new writer; one that is compacted takes only those to whom it makes no difference.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from tidemark.clock import Clock, wall_clock
from tidemark.delivery.compacted_history import BEGIN_ANEW, require_history
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.target import refuse_left_over
from tidemark.delivery.writer import Writer
from tidemark.delivery.writer_topics import Beginning, find_beginning
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.state.control import LogControl
from tidemark.log.state.registered_writers import Enrolled, enrol, enrolled, ensure_enrolled, withdraw
from tidemark.pipeline.model import WriterStart

Start = int | Literal[WriterStart.RECREATED]
"""The position a new writer begins with, or that it begins with the topics that were made again."""


def known_writer(
    writer: Writer, log: PublishedLog, positions: Positions, start: Start, clock: Clock = wall_clock
) -> tuple[WriterState, PublishedLog]:
    """The writer's state, and the log to deliver from; registers it at its first run."""
    state = positions.load(writer.name)
    if state is not None:
        ensure_enrolled(log.control, Enrolled(writer.name, state.version))
        return state, log
    place = Enrolled(writer.name, positions.version(writer.name))
    head = enrol(log.control, place, clock(), "a new writer is refused")
    reach(FaultPoint.REGISTER_ENROLLED)
    try:
        # Only what is compacted by now matters: from here on compaction waits for this writer.
        current = log if head.compacted_below == log.manifest.compacted_below else log.reopened()
        if isinstance(start, int):
            begins = Beginning(start, {})
        else:
            begins = find_beginning(writer, log.control, current.end)
        require_history(writer, writer.name, current, begins.position + 1, BEGIN_ANEW)
        identity = writer.identify()
        bound = writer.bound_to(identity) if identity else writer
        refuse_left_over(bound, identity, positions, log.control)
    except Exception:
        withdraw(log.control, place)
        raise
    target = identity.id if identity else None
    return positions.register(writer.name, bound.shape, begins.position, target, begins.starts), current


def forget_writer(control: LogControl, positions: Positions, name: str) -> None:
    """Let the log wait no longer for a writer that is registered nowhere."""
    place = enrolled(control).get(name)
    if place is not None and positions.load(name) is None:
        withdraw(control, place)


@dataclass(frozen=True, slots=True)
class RegisteredWriter:
    """A writer that compaction has to wait for."""

    name: str
    position: int
    """The last id it has finished with, or may go back to at any moment; −1 where it never ran."""
    holds_below: int
    """Ids below this one it never asks for again: those below its position, and not in the binding that it is
    in the middle of, which is delivered whole."""
    is_declared: bool
    """Whether the pipeline's file has it; otherwise it is retired."""


def registered_writers(
    control: LogControl, positions: Positions, declared: Collection[str], refused: Collection[str] = ()
) -> list[RegisteredWriter]:
    """All writers of a pipeline, in the file or retired, in the order of their names.

    One that is declared and never ran counts too, as one that has finished with nothing: leave those out of
    ``declared`` that begin at the end of the log. Of the ``refused`` ones only those count that run already,
    or are being registered at this moment: the others can never begin.
    """
    on_list = enrolled(control)
    names = sorted({*on_list, *declared, *control.writer_names()})
    states = {name: positions.load(name) for name in names}
    waiting = {*declared} - {*refused}
    return [
        _registered(control, name, states[name], on_list.get(name), name in declared)
        for name in names
        if states[name] or name in on_list or name in waiting
    ]


def _registered(
    control: LogControl, name: str, state: WriterState | None, place: Enrolled | None, is_declared: bool
) -> RegisteredWriter:
    if state is None:
        return RegisteredWriter(name, NOTHING_YET, NOTHING_YET, is_declared)
    position = place.position(state.version, state.position) if place else state.position
    return RegisteredWriter(
        name, position, holds_below(position, control.bindings_after(position)), is_declared
    )


def holds_below(position: int, following: Sequence[Binding]) -> int:
    """The first id that a writer at a position may ask for again, or its position's where that is lower.

    ``following`` are the bindings that own ids beyond the position, oldest first.
    """
    is_inside = bool(following) and following[0].base <= position
    return min(position, following[0].base) if is_inside else position
