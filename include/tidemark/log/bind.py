"""bind: decide which offsets belong to the next binding, and make that decision durable.

After this step no code reads a clock or asks Kafka what is newest. Two binders may race: one wins, and both
go on with the winner's row. Lost offsets close the log's gate, which opens by itself once nothing is lost.
"""

from tidemark.consensus.objects import Outpaced
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.errors import LogError
from tidemark.log.model.binding import NOTHING_YET, Available, Binding, cut_slices, next_time
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.model.loss import Loss, find_losses, ids_of, said
from tidemark.log.state.control import BindingsHead, LogControl

MAX_CLOCK_DIFFERENCE = 10_000_000
"""µs. Write timestamps come from ``t``: a clock far ahead would hide other writers' newer data."""


@with_fields
class ClockOff(LogError):
    """This machine's clock and Cassandra's are too far apart to hand out write timestamps."""

    pipeline: str
    difference: int

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: this machine's clock is {self.difference / 1000000.0:+.1f} s away from "
            "Cassandra's. Nothing was bound. Synchronise the clocks (at most 10 s are allowed) and run "
            "again."
        )


@with_fields
class OffsetsLost(LogError):
    """Kafka no longer has what the log still needs from it."""

    needs_person = True

    pipeline: str
    losses: tuple[Loss, ...]
    t: int | None = None

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: records are lost: {said(self.losses)}. Nothing was bound or published. "
            "Restore the topic and clear the failed task, or accept the loss: tidemark log accept "
            f'{self.pipeline} --reason "…"'
        )


def refuse_clock(pipeline: str, ours: int, servers: int) -> None:
    """Refuse to hand out write timestamps by a clock that is off."""
    if abs(ours - servers) > MAX_CLOCK_DIFFERENCE:
        raise ClockOff(pipeline, ours - servers)


def find_unfinished(control: LogControl, run_id: str) -> Binding | None:
    """What has to be done before anything new: this run's own binding, else the oldest unpublished one."""
    if own := control.binding_of_run(run_id):
        return own
    head, log = control.bindings_head(), control.log_head()
    if head.newest is None or head.newest <= log.t:
        return None
    return control.bindings_after(log.end)[0]


def bind(
    control: LogControl,
    available: Available,
    limit: int,
    now: int,
    run_id: str,
    head: BindingsHead | None = None,
) -> Binding | None:
    """The binding this run shall work on; None when there is nothing new.

    ``head`` is what was bound before Kafka was asked for what is available.
    """
    # Read before looking around: whatever is bound from here on makes the compare-and-set below fail.
    head = head or control.bindings_head()
    if unfinished := find_unfinished(control, run_id):
        return unfinished
    if losses := list(find_losses(head.reached, head.topic_ids, available)):
        raise OffsetsLost(control.pipeline, tuple(losses))
    previous = control.binding(head.newest) if head.newest is not None else None
    t = next_time(now, head.upper, previous)
    slices = cut_slices(head.reached, available.offsets, limit)
    try:
        if not slices:
            control.advance_upper(head, t)
            return None
        base = (previous.end if previous else NOTHING_YET) + 1
        bound = {s.topic for s in slices}
        topics = tuple(sorted((name, id_) for name, id_ in available.topic_ids.items() if name in bound))
        binding = Binding(t, base, slices, run_id, topics)
        reach(FaultPoint.BIND_DECIDED)
        control.add_binding(head, binding)
        reach(FaultPoint.BIND_COMMITTED)
        return binding
    except Outpaced:
        return find_unfinished(control, run_id)


def bind_guarded(
    control: LogControl,
    available: Available,
    limit: int,
    now: int,
    run_id: str,
    head: BindingsHead | None = None,
) -> Binding | None:
    """See ``bind``; a loss is made durable before it is raised."""
    try:
        binding = bind(control, available, limit, now, run_id, head)
    except OffsetsLost as lost:
        close_for_losses(control, lost, now)
        raise
    gate = control.log_gate()
    if gate is not None and gate.cause is LogGateCause.LOST and gate.t is None:
        control.open_gate(gate)  # Kafka was restored, or a process crashed right after accepting the loss
    return binding


def close_for_losses(control: LogControl, lost: OffsetsLost, now: int) -> LogGate:
    """Close the log's gate over offsets that Kafka no longer has."""
    ids = None
    if lost.t is not None:
        binding = control.binding(lost.t)
        owned = [ids_of(binding, loss) for loss in lost.losses]
        ids = (min(first for first, _ in owned), max(last for _, last in owned))
    reason = f"records are lost: {said(lost.losses)}"
    gate = control.close_gate(LogGate(LogGateCause.LOST, reason, lost.t, ids, lost.losses, None, now))
    reach(FaultPoint.GATE_CLOSED)
    return gate
