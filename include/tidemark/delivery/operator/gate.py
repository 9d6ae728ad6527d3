"""Close and open a writer's gate by hand."""

from dataclasses import replace

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.operator.action_plan import ActionPlan, commit_as_seen, load_free, plan_for, refusal
from tidemark.delivery.state.handed_back import refuse_handed_back
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate


def plan_stop(positions: Positions, name: str, clock: Clock = wall_clock) -> ActionPlan:
    """Close the gate; one that is closed already stays as it is."""
    state = load_free(positions, name, clock())
    if state.gate:
        lines = (f"it is stopped already, at {state.gate.where} ({state.gate.cause}): {state.gate.reason}",)
        plan = plan_for("stop", state, lines, {"position": state.position}, lambda deed: None)
        return replace(plan, changes=False)

    def execute(deed: AuditEntry) -> None:
        place = (state.position + 1, state.position + 1, state.position)
        gate = WriterGate(Cause.HAND, *place, f"stopped by {deed.who}: {deed.reason}", deed.at)
        commit_as_seen(positions, state, state.position, None, gate, deed)

    return plan_for("stop", state, (f"the gate closes at position {state.position}",), {}, execute)


def plan_open(positions: Positions, name: str, clock: Clock = wall_clock) -> ActionPlan:
    """Open the gate without redelivering one message at a time: the next run delivers in bulk."""
    state = load_free(positions, name, clock())
    if state.gate is None:
        raise refusal(state, "its gate is open.")
    refuse_handed_back(state, positions.handed_back(state))
    lines = (
        f"the gate opens ({state.gate.cause}: {state.gate.reason})",
        f"the next run delivers from id {state.position + 1} on, in bulk; nothing is skipped",
    )

    def execute(deed: AuditEntry) -> None:
        commit_as_seen(positions, state, state.position, None, None, deed)

    return plan_for("open", state, lines, {"position": state.position}, execute)
