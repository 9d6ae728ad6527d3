"""Forget a writer that is in no pipeline file any more. Its output is not touched."""

from collections.abc import Sequence

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.objects import Outpaced
from tidemark.delivery.operator.action_plan import (
    ActionPlan,
    ChangedMeanwhile,
    NotPossible,
    plan_for,
    refuse_held,
)
from tidemark.delivery.renditions.output import forget_output
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import forget_writer
from tidemark.delivery.state.writer_state import WriterState
from tidemark.faults import FaultPoint, reach
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.state.control import LogControl
from tidemark.log.state.registered_writers import enrolled
from tidemark.outputs.model.consumer_name import split_consumer


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
    if split_consumer(name)[1] is not None:
        raise NotPossible(
            pipeline, name, "a writer is forgotten with all its renditions: name it without a number."
        )
    if name in declared:
        raise NotPossible(pipeline, name, "it is in the pipeline's file; remove it there first.")
    if positions.load(name) is None and name in enrolled(control):
        # The first run of this writer, or an earlier removal, was interrupted: only its enrolment is left.
        lines = ("it was never delivered to; the log does not wait for it any more",)
        details = {"position": NOTHING_YET}
        return ActionPlan(
            "forget", pipeline, name, lines, details, lambda _: forget_writer(control, positions, name)
        )
    state, *others = _consumers(positions, control, name, clock())

    def execute(deed: AuditEntry) -> None:
        # The first consumer last: where this is interrupted, the writer is still there, and goes on with it.
        for one in reversed([state, *others]):
            if one is state:
                forget_output(positions.consensus, pipeline, name)
            try:
                positions.forget(one, deed)
            except Outpaced:
                raise ChangedMeanwhile(one.pipeline, one.name) from None
            reach(FaultPoint.FORGOTTEN)
            forget_writer(control, positions, one.name)

    removed = [f"position {state.position}, gate and offset log are removed", "the output stays where it is"]
    if others:
        removed.append(f"so are those of {', '.join(one.name for one in others)}")
    return plan_for("forget", state, removed, {"position": state.position}, execute)


def _consumers(positions: Positions, control: LogControl, name: str, now: int) -> list[WriterState]:
    """The registered consumers of a writer's renditions, the first one first; refuses those with a lease."""
    names = {*enrolled(control), *control.writer_names()}
    of_writer = {one for one in names if split_consumer(one)[0] == name} | {name}
    found = [state for one in sorted(of_writer) if (state := positions.load(one)) is not None]
    if not found:
        raise NotPossible(positions.pipeline, name, "no writer of this name was ever registered.")
    for state in found:
        refuse_held(state, "", now)
    return found
