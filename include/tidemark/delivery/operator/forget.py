"""Forget a writer that is in no pipeline file any more. Its output is not touched."""

from collections.abc import Sequence

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.objects import Outpaced
from tidemark.delivery.operator.action_plan import (
    ActionPlan,
    ChangedMeanwhile,
    NotPossible,
    load_free,
    plan_for,
)
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import forget_writer
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.log.state.registered_writers import enrolled


def plan_forget(
    positions: Positions,
    control: LogControl,
    name: str,
    declared: Sequence[str],
    clock: Clock = wall_clock,
) -> ActionPlan:
    """Remove the writer's state, so that it no longer holds compaction back.

    ``declared`` are the writers of the pipeline's file, which are refused. Needs no log, so it works for
    pipelines that only the control plane knows.
    """
    pipeline = positions.pipeline
    if name in declared:
        raise NotPossible(pipeline, name, "it is in the pipeline's file; remove it there first.")
    if positions.load(name) is None and name in enrolled(control):
        # The first run of this writer, or an earlier removal, was interrupted: only its enrolment is left.
        lines = ("it was never delivered to; the log does not wait for it any more",)
        details = {"position": NOTHING_YET}
        return ActionPlan(
            "forget", pipeline, name, lines, details, lambda _: forget_writer(control, positions, name)
        )
    state = load_free(positions, name, clock())

    def execute(deed: AuditEntry) -> None:
        try:
            positions.forget(state, deed)
        except Outpaced:
            raise ChangedMeanwhile(state.pipeline, state.name) from None
        reach(FaultPoint.FORGOTTEN)
        forget_writer(control, positions, name)

    removed = (f"position {state.position}, gate and offset log are removed", "the output stays where it is")
    return plan_for("forget", state, removed, {"position": state.position}, execute)
