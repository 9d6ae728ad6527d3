"""The plan of an operator's action on a writer, and the errors of planning and executing it.

An action is planned first. The plan is shown; executed, it needs an operator's name and a reason, which the
writer's audit rows keep. Nothing is executed while a run holds the writer's lease, or after the writer has
changed since the plan was made. A mistyped name creates nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.clock import Clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease import lease_of_another, new_lease
from tidemark.consensus.objects import Outpaced
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.state.lease import LeaseHeld, WriterHold
from tidemark.delivery.state.positions import Positions, refuse_ended
from tidemark.delivery.state.writer_state import OffsetEntry, WriterGate, WriterState
from tidemark.errors import with_fields


@with_fields
class NotPossible(DeliveryError):
    """The action cannot be applied to this writer in its present state."""

    needs_person = True

    pipeline: str
    writer: str
    problem: str

    text = "{pipeline}/{writer}: {problem} Nothing was changed."


@with_fields
class ChangedMeanwhile(DeliveryError):
    """The writer has changed since the plan was made."""

    pipeline: str
    writer: str

    text = "{pipeline}/{writer}: it was changed while you looked at the plan. Nothing was done; look again."


@dataclass(frozen=True, slots=True)
class ActionPlan:
    """The effect of an action on a writer, and the function that executes it.

    Attributes:
        action: The action, as the command is called.
        pipeline: The pipeline's name.
        writer: The writer's name.
        lines: The effect, one line each, for output.
        details: The effect, for ``--json``.
        execute: Carries the action out, with the operator's audit entry.
        changes: False where the writer already is as asked for, which is no failure.
    """

    action: str
    pipeline: str
    writer: str
    lines: tuple[str, ...]
    details: dict[str, Any]
    execute: Callable[[AuditEntry], None]
    changes: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "action": self.action,
            "pipeline": self.pipeline,
            "writer": self.writer,
            "plan": list(self.lines),
            **self.details,
        }


def plan_for(
    action: str,
    state: WriterState,
    lines: Sequence[str],
    details: dict[str, Any],
    execute: Callable[[AuditEntry], None],
) -> ActionPlan:
    """The plan of an action on the writer in this state."""
    return ActionPlan(action, state.pipeline, state.name, tuple(lines), details, execute)


def load_free(positions: Positions, name: str, now: int, holder: str = "") -> WriterState:
    """The state of a registered writer whose lease no process but ``holder`` has."""
    state = positions.load(name)
    if state is None:
        raise NotPossible(positions.pipeline, name, "no writer of this name was ever registered.")
    refuse_ended(state)
    refuse_held(state, holder, now)
    return state


def refusal(state: WriterState, problem: str) -> NotPossible:
    """The error for an action that this writer's state does not allow."""
    return NotPossible(state.pipeline, state.name, problem)


def refuse_held(state: WriterState, holder: str, now: int) -> None:
    """Refuse to plan an action for a writer whose lease another process has."""
    if other := lease_of_another(state.lease, holder, now):
        raise LeaseHeld(state.pipeline, state.name, other)


def take_as_seen(positions: Positions, state: WriterState, holder: str, clock: Clock) -> WriterHold:
    """Take a writer's lease, if the writer is still as the plan saw it."""
    try:
        return WriterHold(positions, positions.lend(state, new_lease(state.token, holder, clock())), clock)
    except Outpaced:
        raise ChangedMeanwhile(state.pipeline, state.name) from None


def commit_as_seen(
    positions: Positions,
    state: WriterState,
    position: int,
    entry: OffsetEntry | None,
    gate: WriterGate | None,
    deed: AuditEntry,
    unfinished: Sequence[str] = (),
) -> None:
    """Commit an action with its audit row, if the writer is still as the plan saw it."""
    further = positions.audit_row(state, deed)
    try:
        positions.commit(state, position, entry, gate, None, further, unfinished)
    except Outpaced:
        raise ChangedMeanwhile(state.pipeline, state.name) from None
