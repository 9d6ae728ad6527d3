"""Registration of a consumer, which delivers to one rendition of a writer: first with the log, whose
compaction then waits for it, then in its own object; then the output of the writer, for its first rendition.

In this order no crash lets a compaction overlook a writer: one that only the log knows counts as a writer
that has finished nothing. While a compaction holds the log, no writer is registered. A compacted log accepts
only writers that do not need every message.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.lease_wait import PATIENCE
from tidemark.delivery.compacted_history import BEGIN_ANEW, require_history
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.errors import PlaceNotEmpty
from tidemark.delivery.renditions.output import FIRST, WriterOutput
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.target import refuse_left_over
from tidemark.delivery.writer import TargetIdentity, Writer
from tidemark.delivery.writer_topics import Beginning, find_beginning
from tidemark.faults import FaultPoint, reach
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.state.control import LogControl
from tidemark.log.state.holds import holds
from tidemark.log.state.registered_writers import Enrolled, enrol, enrolled, ensure_enrolled, withdraw
from tidemark.outputs.model.consumer_name import consumer_name, split_consumer
from tidemark.outputs.model.rendition import Rendition, RenditionState
from tidemark.outputs.state.output_store import OutputStore
from tidemark.pipeline.model import AnyWriter, WriterStart

_RELEASED = frozenset({RenditionState.ABANDONED, RenditionState.DROPPED})
"""The states of renditions that compaction does not wait for."""

Start = int | Literal[WriterStart.RECREATED]
"""The position that a new writer begins with, or ``recreated``: it begins with recreated topics."""


def start_of(declared: AnyWriter, end: int) -> Start:
    """Where a declared writer begins that is not registered yet; ``end`` is the end of the log."""
    if declared.start is WriterStart.RECREATED:
        return WriterStart.RECREATED
    return end if declared.start is WriterStart.LATEST else NOTHING_YET


def known_writer(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    start: Start,
    clock: Clock = wall_clock,
    patience: float = PATIENCE,
) -> tuple[WriterState, PublishedLog]:
    """The consumer's state, and the log to deliver from; registers it at its first run, at ``start``.

    A registration waits for a follow that merges small files, ``patience`` seconds at most. A consumer that
    has ended is returned as it is.
    """
    output = WriterOutput.of(writer, log, positions, clock)
    state = positions.load(writer.name)
    if state is not None:
        if state.ended is None:
            ensure_enrolled(log.control, Enrolled(writer.name, state.version))
        return state, log
    place = Enrolled(writer.name, positions.version(writer.name))
    head = enrol(log.control, place, clock(), "a new writer is refused", patience)
    reach(FaultPoint.REGISTER_ENROLLED)
    try:
        # From here on compaction waits for this writer, so only what is compacted by now matters.
        current = log if head.compacted_below == log.manifest.compacted_below else log.reopened()
        begins = _beginning(writer, current, start)
        require_history(writer, writer.name, current, begins.position + 1, BEGIN_ANEW, is_new=True)
        output = replace(output, log=current)
        found = output.store.load()
        is_first_try = positions.load(writer.name) is None  # else another run was faster
        if is_first_try:
            output.refuse_undeclared(found)
            if output.is_timed:
                writer.create_target()
        identity = writer.identify()
        bound = writer.bound_to(identity) if identity else writer
        if is_first_try and output.number != FIRST:
            _refuse_place_in_use(output, identity, bound)
        refuse_left_over(bound, identity, positions, log.control)
    except Exception:
        withdraw(log.control, place)
        raise
    target = identity.id if identity else None
    state = positions.register(writer.name, bound.shape, begins.position, target, begins.starts)
    reach(FaultPoint.REGISTER_REGISTERED)
    if state.ended is None:
        output.ensure(state)
    else:  # its rendition was retired or given up in between
        withdraw(log.control, place)
    return state, current


def _refuse_place_in_use(output: WriterOutput, identity: TargetIdentity | None, bound: Writer) -> None:
    """Raise ``PlaceNotEmpty`` unless a faster process has registered the consumer meanwhile: then what is
    there is its output."""
    try:
        output.refuse_place_in_use(identity, bound)
    except PlaceNotEmpty:
        if output.positions.load(bound.name) is None:
            raise


def _beginning(writer: Writer, log: PublishedLog, start: Start) -> Beginning:
    if isinstance(start, int):
        return Beginning(start, {})
    return find_beginning(writer, log.control, log.end)


def forget_writer(control: LogControl, positions: Positions, name: str) -> None:
    """Withdraw a writer from the log that has no state of its own, so that compaction no longer waits for
    it."""
    place = enrolled(control).get(name)
    if place is not None and positions.load(name) is None:
        withdraw(control, place)


@dataclass(frozen=True, slots=True)
class RegisteredWriter:
    """A writer that compaction has to wait for.

    Attributes:
        name: The writer's name.
        position: The last id it has finished, or that an announced rewind may move it to; −1 where it never
            ran.
        holds_below: It never reads ids below this one again: those below its position, except in a binding
            that it has begun, which is delivered whole.
        is_declared: Whether the pipeline's file declares it; otherwise it is retired.
    """

    name: str
    position: int
    holds_below: int
    is_declared: bool


def registered_writers(
    control: LogControl, positions: Positions, declared: Collection[str], refused: Collection[str] = ()
) -> list[RegisteredWriter]:
    """All writers of a pipeline that compaction has to wait for, declared or retired, sorted by name.

    A declared writer that never ran counts as one that has finished nothing; the caller leaves those out of
    ``declared`` that begin at the end of the log. ``refused`` ones count only where they are registered or
    being registered: the others can never begin.
    """
    found = _positions(control, positions, declared, refused)
    return [
        RegisteredWriter(name, position, _holds_below(control, position), split_consumer(name)[0] in declared)
        for name, position in found.items()
    ]


def passed_by_all(
    control: LogControl, positions: Positions, declared: Collection[str], refused: Collection[str] = ()
) -> int:
    """The last id that every consumer of a log has finished with: the writers of ``registered_writers``, and
    the holders of a part of the log. −1 where there is no writer.
    """
    writers = _positions(control, positions, declared, refused).values()
    if not writers:
        return NOTHING_YET
    return min((*writers, *(one.after for one in holds(control))))


def _positions(
    control: LogControl, positions: Positions, declared: Collection[str], refused: Collection[str]
) -> dict[str, int]:
    """The position that every consumer has or may get by a rewind in progress; −1 for one that never ran.

    Those of every rendition count, delivered to or not: a closed gate or a build holds the log back. Only an
    abandoned or dropped one does not, and none that has ended.
    """
    on_list = enrolled(control)
    states = {name: positions.load(name) for name in {*on_list, *declared, *control.writer_names()}}
    there = {name for name, state in states.items() if state or name in on_list or name in declared}
    renditions = {
        consumer_name(writer, one.number): one.state
        for writer in {split_consumer(name)[0] for name in there}  # the output of a forgotten writer stays
        for one in _renditions(positions, writer)
    }
    states |= {name: None for name in renditions if name not in states}
    waiting = {*there, *renditions} - {*refused}
    return {
        name: _position(state, on_list.get(name))
        for name, state in sorted(states.items())
        if not (state and state.ended)
        and renditions.get(name) not in _RELEASED
        and (state or name in on_list or name in waiting)
    }


def _renditions(positions: Positions, writer: str) -> Sequence[Rendition]:
    output = OutputStore(positions.consensus, positions.pipeline, writer).load()
    return output.renditions if output else ()


def _position(state: WriterState | None, place: Enrolled | None) -> int:
    if state is None:
        return NOTHING_YET
    return place.position(state.version, state.position) if place else state.position


def _holds_below(control: LogControl, position: int) -> int:
    if position == NOTHING_YET:
        return NOTHING_YET
    return holds_below(position, next(Bindings(control).after(position), None))


def holds_below(position: int, following: Binding | None) -> int:
    """The id below which a writer at a position never reads again.

    ``following`` is the first binding that ends after the position. Where the position is inside of it, it is
    delivered whole, so it counts from its first id.
    """
    return following.base if following and following.base <= position else position
