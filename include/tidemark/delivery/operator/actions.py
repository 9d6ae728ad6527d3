"""The actions of an operator on the writers of one pipeline: acknowledge, rewind, stop, open, forget."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.clock import Clock, wall_clock
from tidemark.delivery.dead_letters.store import DeadLetters
from tidemark.delivery.operator.acknowledge import AcknowledgementPlanner
from tidemark.delivery.operator.action_plan import ActionPlan
from tidemark.delivery.operator.forget import plan_forget
from tidemark.delivery.operator.gate import plan_open, plan_stop
from tidemark.delivery.operator.rewind import plan_rewind
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.writer import Writer


@dataclass(frozen=True)
class OperatorActions:
    """Plans actions; one method each. Nothing is changed before a plan is executed."""

    positions: Positions
    log: PublishedLog
    clock: Clock = wall_clock

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
        planned = AcknowledgementPlanner(self.positions, self.log, writer, letters, self.clock)
        return planned.plan(first, last, untried=untried)

    def rewind(self, name: str, position: int, writer: Writer | None = None) -> ActionPlan:
        """Move a position back; see ``plan_rewind``."""
        return plan_rewind(self.positions, self.log, name, position, writer, self.clock)

    def stop(self, name: str) -> ActionPlan:
        """Close a gate; see ``plan_stop``."""
        return plan_stop(self.positions, name, self.clock)

    def open(self, name: str) -> ActionPlan:
        """Open a gate; see ``plan_open``."""
        return plan_open(self.positions, name, self.clock)

    def forget(self, name: str, declared: Sequence[str]) -> ActionPlan:
        """Remove a writer that is in no file any more; see ``plan_forget``."""
        return plan_forget(self.positions, self.log.control, name, declared, self.clock)
