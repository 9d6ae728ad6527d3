"""bind behind the log's gate: lost offsets close it, and it opens by itself once nothing is lost any more."""

from tidemark.faults import FaultPoint, reach
from tidemark.log.bind import OffsetsLost, bind
from tidemark.log.model.binding import Available, Binding
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.model.loss import ids_of, said
from tidemark.log.state.control import BindingsHead, LogControl


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
        control.open_gate(gate)  # Kafka was restored, or somebody died right after accepting the loss
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
