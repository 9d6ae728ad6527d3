"""The actions of an operator on the writers of one pipeline: acknowledge, rewind, stop, open, forget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.dead_letters.store import DeadLetters
from tidemark.delivery.operator.acknowledge import AcknowledgementPlanner
from tidemark.delivery.operator.action_plan import ActionPlan, commit_as_seen, load_free, plan_for, refusal
from tidemark.delivery.operator.forget import plan_forget
from tidemark.delivery.operator.rewind import plan_rewind
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.output import revoke_verifications
from tidemark.delivery.state.handed_back import refuse_handed_back
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.delivery.writer import Writer


def plan_stop(positions: Positions, name: str, clock: Clock = wall_clock, holder: str = "") -> ActionPlan:
    """Close the gate; one that is closed already stays as it is."""
    state = load_free(positions, name, clock(), holder)
    if state.gate:
        lines = (f"it is stopped already, at {state.gate.where} ({state.gate.cause}): {state.gate.reason}",)
        plan = plan_for("stop", state, lines, {"position": state.position}, lambda deed: None)
        return replace(plan, changes=False)

    def execute(deed: AuditEntry) -> None:
        place = (state.position + 1, state.position + 1, state.position)
        gate = WriterGate(Cause.HAND, *place, f"stopped by {deed.who}: {deed.reason}", deed.at)
        commit_as_seen(positions, state, state.position, None, gate, deed)

    return plan_for("stop", state, (f"the gate closes at position {state.position}",), {}, execute)


def plan_open(positions: Positions, name: str, clock: Clock = wall_clock, holder: str = "") -> ActionPlan:
    """Open the gate without redelivering one message at a time: the next run delivers in bulk."""
    state = load_free(positions, name, clock(), holder)
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


@dataclass(frozen=True)
class OperatorActions:
    """Plans actions; one method each. Nothing is changed before a plan is executed.

    ``holder`` is the name under which the caller has the writer's lease already, to keep rounds of a follow
    away.
    """

    positions: Positions
    log: PublishedLog
    clock: Clock = wall_clock
    holder: str = ""

    def acknowledge(
        self,
        writer: Writer,
        first: int,
        last: int | None,
        letters: DeadLetters,
        *,
        untried: bool = False,
    ) -> ActionPlan:
        """Pass over messages without writing them; see ``AcknowledgementPlanner.plan``."""
        planned = AcknowledgementPlanner(self.positions, self.log, writer, letters, self.clock, self.holder)
        return self._revoking(planned.plan(first, last, untried=untried))

    def rewind(self, name: str, position: int, writer: Writer | None = None) -> ActionPlan:
        """Move a position back; see ``plan_rewind``."""
        plan = plan_rewind(self.positions, self.log, name, position, writer, self.clock, self.holder)
        return self._revoking(plan)

    def stop(self, name: str) -> ActionPlan:
        """Close a gate; see ``plan_stop``."""
        return plan_stop(self.positions, name, self.clock, self.holder)

    def open(self, name: str) -> ActionPlan:
        """Open a gate; see ``plan_open``."""
        return plan_open(self.positions, name, self.clock, self.holder)

    def forget(self, name: str, declared: Sequence[str]) -> ActionPlan:
        """Remove a writer that is in no file any more; see ``plan_forget``."""
        return plan_forget(self.positions, self.log.control, name, declared, self.clock)

    def _revoking(self, plan: ActionPlan) -> ActionPlan:
        """A plan after which verifications are withdrawn that were based on something else."""

        def execute(deed: AuditEntry) -> None:
            plan.execute(deed)
            revoke_verifications(self.positions, plan.writer)

        return replace(plan, execute=execute)
