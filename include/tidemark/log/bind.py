"""bind: decide which offsets belong to the next binding, and make that decision durable.

After this step no code reads a clock or the latest offsets of Kafka. Of two concurrent runs one commits, and
both continue with its binding. Lost offsets close the log's gate; it opens by itself once nothing is lost.
"""

from dataclasses import replace

from tidemark.clock import SECOND
from tidemark.consensus.objects import Outpaced
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.bindings.door import Bindings
from tidemark.log.errors import LogError
from tidemark.log.model.binding import (
    NOTHING_YET,
    Available,
    Binding,
    CapturePlace,
    cut_slices,
    next_time,
)
from tidemark.log.model.fixed_partitions import PartitionChange, find_changes, with_counts
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.model.loss import Loss, describe_losses, find_losses, ids_of
from tidemark.log.state.control import BindingsHead, LogControl

MAX_CLOCK_DIFFERENCE = 10_000_000
"""In µs. Write timestamps derive from ``t``: a clock that is far ahead would hide newer data of other
writers.
"""


@with_fields
class ClockOff(LogError):
    """This machine's clock and Cassandra's are too far apart to hand out write timestamps."""

    pipeline: str
    difference: int

    text = (
        "{pipeline}: this machine's clock is {seconds:+.1f} s away from Cassandra's. Nothing was bound. "
        "Synchronise the clocks (at most 10 s are allowed) and run again."
    )

    @property
    def seconds(self) -> float:
        """The difference in seconds."""
        return self.difference / SECOND


@with_fields
class OffsetsLost(LogError):
    """Kafka no longer has offsets that the log still needs."""

    needs_person = True

    pipeline: str
    losses: tuple[Loss, ...]
    t: int | None = None

    text = (
        "{pipeline}: {reason}. Nothing was bound or published. Restore the topic and clear the failed task, "
        'or accept the loss: tidemark log accept {pipeline} --reason "…"'
    )

    @property
    def reason(self) -> str:
        """The problem in one sentence, as the gate that is closed because of it keeps it."""
        return f"records are lost: {describe_losses(self.losses)}"


@with_fields
class PartitionsChanged(LogError):
    """A topic has another number of partitions than the one by which the partitions of keys are computed."""

    needs_person = True

    pipeline: str
    changes: tuple[PartitionChange, ...]

    text = (
        "{pipeline}: {reason}: a producer that computes them by the present number sends the messages of a "
        "key to two partitions, which have no order. Nothing was bound. Where no producer does, accept it: "
        "the number by which partitions are computed stays, and the further partitions stay empty: tidemark "
        'log accept {pipeline} --execute --reason "…". For another number of partitions create the topic '
        "anew, which is accepted in the same way, and synchronise with a dump."
    )

    @property
    def reason(self) -> str:
        """The problem in one sentence, as the gate that is closed because of it keeps it."""
        return "; ".join(map(str, self.changes))


def refuse_clock(pipeline: str, ours: int, servers: int) -> None:
    """Raise ``ClockOff`` where this machine's time and Cassandra's (both in µs) differ too much."""
    if abs(ours - servers) > MAX_CLOCK_DIFFERENCE:
        raise ClockOff(pipeline, ours - servers)


def find_unfinished(control: LogControl, run_id: str, bindings: Bindings | None = None) -> Binding | None:
    """The binding to finish before a new one is made: this run's own, else the oldest unpublished one,
    else None.

    A run's own binding is found however long ago it was made: a run that is cleared after its binding has
    left the control plane must not bind a second time.
    """
    door = bindings or Bindings(control)
    if own := door.of_run(run_id):
        return own
    head, log = control.bindings_head(), control.log_head()
    if head.newest is None or head.newest <= log.t:
        return None
    return next(door.after(log.end))


def bind(
    control: LogControl,
    available: Available,
    limit: int,
    now: int,
    run_id: str,
    head: BindingsHead | None = None,
    bindings: Bindings | None = None,
    in_process: int = 0,
    *,
    fixes_partitions: bool = False,
) -> Binding | None:
    """The binding that this run has to process; None where there is nothing new.

    ``limit`` is the greatest number of offsets to bind. ``head``, where given, was read before ``available``
    was read from Kafka. A binding of at most ``in_process`` offsets is captured without Spark. Where the
    source ``fixes_partitions``, the partition counts of its topics are recorded, and others are refused.

    Lost offsets raise ``OffsetsLost``, another partition count ``PartitionsChanged``. Both close the log's
    gate at ``now``; a gate that was closed because of unbound offsets, or of a count, is opened where nothing
    is lost any more and the counts are right.
    """
    # Read first: any binding that is made after this read makes the compare-and-set fail.
    before, door = head or control.bindings_head(), bindings or Bindings(control)
    try:
        binding = find_unfinished(control, run_id, door) or _bind_next(
            control, door, before, available, limit, now, run_id, in_process, fixes_partitions
        )
    except OffsetsLost as lost:
        close_for_losses(control, lost, now)
        raise
    except PartitionsChanged as changed:
        cause, changes = LogGateCause.PARTITIONS, changed.changes
        control.close_gate(LogGate(cause, changed.reason, None, None, (), None, now, changes))
        reach(FaultPoint.GATE_CLOSED)
        raise
    gate = control.log_gate()
    if gate is not None and gate.cause in _OF_SOURCE and gate.t is None:
        control.open_gate(gate)  # Kafka was restored, or a process crashed right after accepting the loss
    return binding


_OF_SOURCE = (LogGateCause.LOST, LogGateCause.PARTITIONS)


def _bind_next(
    control: LogControl,
    door: Bindings,
    head: BindingsHead,
    available: Available,
    limit: int,
    now: int,
    run_id: str,
    in_process: int,
    fixes_partitions: bool,
) -> Binding | None:
    if losses := list(find_losses(head.reached, head.topic_ids, available)):
        raise OffsetsLost(control.pipeline, tuple(losses))
    recorded = head
    if fixes_partitions:
        if changes := tuple(find_changes(head.partitions, available)):
            raise PartitionsChanged(control.pipeline, changes)
        recorded = replace(head, partitions=with_counts(head.partitions, available))
    previous = door.at(head.newest) if head.newest is not None else None
    t = next_time(now, head.upper, previous)
    slices = cut_slices(head.reached, available.offsets, limit)
    try:
        if not slices:
            control.advance_upper(recorded, t)
            return None
        base = (previous.end if previous else NOTHING_YET) + 1
        bound = {s.topic for s in slices}
        topics = tuple(sorted((name, id_) for name, id_ in available.topic_ids.items() if name in bound))
        is_small = sum(s.width for s in slices) <= in_process
        place = CapturePlace.PROCESS if is_small else CapturePlace.ENGINE
        binding = Binding(t, base, slices, run_id, topics, place)
        reach(FaultPoint.BIND_DECIDED)
        stored = control.add_binding(recorded, binding)
        reach(FaultPoint.BIND_COMMITTED)
        return stored
    except Outpaced:
        if unfinished := find_unfinished(control, run_id, door):
            return unfinished
        again = control.bindings_head()
        if replace(again, version=head.version, removed=head.removed) != head:
            return None
        # Only rows of archived bindings were removed since: what Kafka has was read after this state.
        settings = (available, limit, now, run_id, in_process, fixes_partitions)
        return _bind_next(control, door, again, *settings)


def close_for_losses(control: LogControl, lost: OffsetsLost, now: int) -> LogGate:
    """Close the log's gate because of lost offsets; returns the closed gate."""
    ids = None
    if lost.t is not None:
        binding = Bindings(control).at(lost.t)
        owned = [ids_of(binding, loss) for loss in lost.losses]
        ids = (min(first for first, _ in owned), max(last for _, last in owned))
    gate = control.close_gate(LogGate(LogGateCause.LOST, lost.reason, lost.t, ids, lost.losses, None, now))
    reach(FaultPoint.GATE_CLOSED)
    return gate
