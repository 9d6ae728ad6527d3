"""accept: a named person lets the log go on over what closed its gate, and everything about it is kept.

Lost offsets become holes that are on record for ever; a capture that failed its audit may be published as it
is. Nothing is repaired here, and a gate that closed for another reason in the meantime stays closed.
"""

from dataclasses import replace

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.update import retry_outpaced
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.errors import LogError
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.model.gate import LogGate
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind, describe_losses, ids_of
from tidemark.log.state.control import BindingsHead, LogControl

ACCEPT = "accept"


@with_fields
class NothingToAccept(LogError):
    """The log's gate is open."""

    pipeline: str

    text = (
        "{pipeline}: the log's gate is open, so there is nothing to accept. Nothing was changed. See: "
        "tidemark status {pipeline}"
    )


@with_fields
class GateChanged(LogError):
    """The gate is not closed any more for what was to be accepted."""

    pipeline: str
    gate: LogGate

    text = (
        "{pipeline}: the log's gate is not closed any more because {gate.reason}. Nothing was accepted. Look "
        "again: tidemark log accept {pipeline}"
    )


def require_closed_gate(control: LogControl) -> LogGate:
    """What there is to accept; refuses an open gate."""
    gate = control.log_gate()
    if gate is None:
        raise NothingToAccept(control.pipeline)
    return gate


def unplanned_losses(control: LogControl) -> list[AcceptedLoss]:
    """Topics that were accepted as made again, or gone, before plans said what becomes of the writers."""
    return [
        one
        for one in control.accepted_losses()
        if one.loss.kind in (LossKind.RECREATED, LossKind.DELETED) and not one.is_planned
    ]


def accept_plan(control: LogControl, acceptance: AuditEntry) -> None:
    """Accept what becomes of the writers, where a topic's loss was accepted without being told."""
    what = "what becomes of the writers: " + describe_losses([one.loss for one in unplanned_losses(control)])
    # First, so that the record exists whatever becomes of this process; doing it again adds another one.
    control.keep_decision(replace(acceptance, what=ACCEPT, about=what))
    reach(FaultPoint.ACCEPT_PLANNED)

    def attempt(head: BindingsHead) -> None:
        told = [
            replace(one, who=acceptance.who, reason=acceptance.reason, at=acceptance.at, is_planned=True)
            for one in unplanned_losses(control)
        ]
        if told:
            control.replace_losses(head, told)

    retry_outpaced(control.bindings_head, attempt)


def accept(control: LogControl, gate: LogGate, acceptance: AuditEntry) -> None:
    """Let the log go on over what this gate says, and over nothing else."""
    if gate.losses:
        _record(control, gate, acceptance)
        reach(FaultPoint.ACCEPT_RECORDED)
    if not control.open_gate(gate, replace(acceptance, what=ACCEPT, about=gate.reason)):
        raise GateChanged(control.pipeline, gate)
    reach(FaultPoint.ACCEPT_OPENED)


def _record(control: LogControl, gate: LogGate, acceptance: AuditEntry) -> None:
    def attempt(head: BindingsHead) -> None:
        # The head was read before the gate: whatever is bound since makes the compare-and-set below fail.
        closed = control.log_gate()
        if closed is None or not closed.is_about(gate):
            return
        losses = [_accepted(control, head, closed, loss, acceptance) for loss in closed.losses]
        known = {one.row for one in control.accepted_losses()}
        if not all(one.row in known for one in losses):
            control.record_losses(head, losses)

    retry_outpaced(control.bindings_head, attempt)


def _accepted(
    control: LogControl, head: BindingsHead, gate: LogGate, loss: Loss, acceptance: AuditEntry
) -> AcceptedLoss:
    if gate.t is not None:
        after = ids_of(control.binding(gate.t), loss)[0] - 1
    else:
        after = control.binding(head.newest).end if head.newest is not None else NOTHING_YET
    return AcceptedLoss(
        loss=loss,
        t=gate.t,
        after=after,
        who=acceptance.who,
        reason=acceptance.reason,
        at=acceptance.at,
        found=gate.at,
        is_planned=True,
    )
