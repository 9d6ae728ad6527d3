"""deliver: bring a writer to the end of the log, binding by binding, under its lease.

The caller decides where the parts of a binding are written: in Spark's tasks or in this process. A failure of
one writer never affects another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

import structlog

from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.consensus.lease import LEASE, Lease
from tidemark.consensus.lease_holder import holding
from tidemark.consensus.lease_wait import PATIENCE, is_of_follow
from tidemark.delivery.binding_delivery import Delivery
from tidemark.delivery.binding_steps import WriteParts
from tidemark.delivery.compacted_history import BEGIN_ANEW, require_history
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.output import WriterOutput, advance_output
from tidemark.delivery.state.lease import Reload, WriterHold, take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import Start, known_writer
from tidemark.delivery.state.writer_state import WriterGate, WriterState
from tidemark.delivery.writer import Writer, Written
from tidemark.log.model.binding import NOTHING_YET, Binding

events = structlog.get_logger()

AGAIN_PATIENCE = LEASE / SECOND + 5
"""Seconds to wait for a follow's lease before something is delivered again, which no follow does: longer than
a dead one keeps it."""
LATER_BINDINGS = "Deliver again only bindings that begin at that id or later."


@dataclass(frozen=True, slots=True)
class Delivered:
    """The result of delivering to one writer in one run.

    Attributes:
        position: The writer's position afterwards.
        total: The counts of everything that was delivered.
        gate: The closed gate, whether this run closed it or an earlier one.
        closed_now: Whether this run closed the gate.
        failure: Why nothing was delivered although the gate is open.
        left_to: The lease of a follow that has the writer, where this run therefore delivered nothing.
        is_ended: Whether nothing was delivered because the consumer has ended.
    """

    position: int
    total: Written = field(default_factory=Written)
    gate: WriterGate | None = None
    closed_now: bool = False
    failure: str | None = None
    left_to: Lease | None = None
    is_ended: bool = False


def deliver_to(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    holder: str,
    write_parts: WriteParts,
    *,
    limit: int,
    reload: Reload,
    clock: Clock = wall_clock,
    is_stopping: Callable[[], bool] = lambda: False,
    start: Start = NOTHING_YET,
) -> Delivered:
    """Deliver the bindings after the writer's position: at least one, then at most ``limit`` ids.

    ``write_parts`` writes the parts of a binding; ``reload`` reads the writer's state anew, from whichever
    process calls it. ``is_stopping`` is asked before every binding. ``start`` is where a writer begins that
    is not registered yet.
    """
    # `shape` may need the target, so a registered writer's is read only when there is something to deliver.
    # An unreachable target then closes the gate like any other failure of it.
    patience = 0.0 if is_of_follow(holder) else PATIENCE  # the next round tries again
    state, log = known_writer(writer, log, positions, start, clock, patience)
    if state.ended is not None or WriterOutput.of(writer, log, positions, clock).is_out_of_use(state):
        events.info("left out: its rendition is out of use", writer=writer.name)
        return Delivered(state.position, is_ended=True)
    place = (writer, log, positions, holder, write_parts, reload, clock)
    done = _deliver(state, *place, limit=limit, is_stopping=is_stopping)
    advance_output(writer, log, positions, clock)
    return done


def _deliver(
    state: WriterState,
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    holder: str,
    write_parts: WriteParts,
    reload: Reload,
    clock: Clock,
    *,
    limit: int,
    is_stopping: Callable[[], bool],
) -> Delivered:
    if state.gate is not None:
        return Delivered(state.position, gate=state.gate)
    with holding(take(positions, state, holder, clock)) as hold:
        if hold.state.gate is not None:  # closed after the state was read and before the lease was taken
            return Delivered(hold.state.position, gate=hold.state.gate)
        delivery = Delivery(writer, log, positions, hold, write_parts, reload, clock)
        first = hold.state.position
        for binding, files in log.waiting(first):
            require_history(writer, writer.name, log, binding.base, BEGIN_ANEW, is_begun=True)
            if is_stopping() or (delivery.position > first and binding.end - first > limit):
                break
            if delivery.position > first and delivery.is_given_up():
                break
            if not delivery.deliver(binding, files):
                break
        return Delivered(delivery.position, delivery.total, hold.state.gate, hold.state.gate is not None)


def deliver_held(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    hold: WriterHold,
    write_parts: WriteParts,
    *,
    through: int,
    reload: Reload,
    clock: Clock = wall_clock,
) -> Delivered:
    """Deliver the bindings after the position of a writer whose lease the caller holds, as far as they begin
    at or below the id ``through``.

    The output is left as it is: the caller, who decides what readers use next, advances the frontier.
    """
    delivery = Delivery(writer, log, positions, hold, write_parts, reload, clock)
    if hold.state.gate is None:
        for binding, files in log.waiting(hold.state.position):
            if binding.base > through or delivery.is_given_up():
                break
            require_history(writer, writer.name, log, binding.base, BEGIN_ANEW, is_begun=True)
            if not delivery.deliver(binding, files):
                break
    return Delivered(delivery.position, delivery.total, hold.state.gate, hold.state.gate is not None)


def deliver_again(
    writer: Writer,
    log: PublishedLog,
    positions: Positions,
    holder: str,
    write_parts: WriteParts,
    *,
    from_t: int,
    to_t: int,
    reload: Reload,
    clock: Clock = wall_clock,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Delivered:
    """Deliver the finished bindings from ``from_t`` to ``to_t`` again, both included.

    Messages that the target has are not written twice, and no position moves.
    """
    state = positions.load(writer.name)
    if state is None:
        return Delivered(NOTHING_YET)
    if state.ended is not None:
        return Delivered(state.position, is_ended=True)
    with holding(take(positions, state, holder, clock, AGAIN_PATIENCE)) as hold:
        position, gate = hold.state.position, hold.state.gate
        if gate is not None:
            return Delivered(position, gate=gate)
        delivery = Delivery(writer, log, positions, hold, write_parts, reload, clock)
        finished = list(_finished(log, from_t, min(to_t, log.manifest.t), position))
        if finished:
            require_history(writer, writer.name, log, finished[0].base, LATER_BINDINGS)
        for binding in finished:
            if is_stopping():
                return Delivered(position, delivery.total, failure=f"asked to stop before t = {binding.t}")
            failure = delivery.deliver_again(binding, log.manifest.files_of(binding))
            if failure:
                closed = hold.state.gate
                return Delivered(position, delivery.total, closed, closed is not None, failure)
    advance_output(writer, log, positions, clock)
    return Delivered(position, delivery.total)


def _finished(log: PublishedLog, from_t: int, to_t: int, position: int) -> Iterator[Binding]:
    """The bindings of an interval that end at or below a position."""
    since = log.bindings.younger(from_t - 1)
    return takewhile(lambda one: one.t <= to_t and one.end <= position, since)
