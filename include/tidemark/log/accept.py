"""accept: an operator accepts what closed the log's gate, which opens it; the decision is kept for ever.

Lost offsets become holes on record. Further partitions of a topic whose partition count is fixed may stay. A
capture that failed its audit may be published as it is. Nothing is
repaired here, and a gate that was closed for another reason in the meantime stays closed.
"""

from dataclasses import replace

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.update import retry_outpaced
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.bindings.door import Bindings
from tidemark.log.bindings.last_bound import with_last_bound
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
    """The gate is not closed any more for the reason that was to be accepted."""

    pipeline: str
    gate: LogGate

    text = (
        "{pipeline}: the log's gate is not closed any more because {gate.reason}. Nothing was accepted. Look "
        "again: tidemark log accept {pipeline}"
    )


def require_closed_gate(control: LogControl) -> LogGate:
    """The closed gate; raises ``NothingToAccept`` where it is open."""
    gate = control.log_gate()
    if gate is None:
        raise NothingToAccept(control.pipeline)
    return gate


def unplanned_losses(control: LogControl) -> list[AcceptedLoss]:
    """Accepted losses of whole topics whose plan did not list the consequences for the writers."""
    return [
        one
        for one in control.accepted_losses()
        if one.loss.kind in (LossKind.RECREATED, LossKind.DELETED) and not one.is_planned
    ]


def accept_plan(control: LogControl, acceptance: AuditEntry) -> None:
    """Accept the consequences for the writers of losses whose plan did not list them."""
    what = "what becomes of the writers: " + describe_losses([one.loss for one in unplanned_losses(control)])
    # First, so that the record exists even if this process crashes; a retry adds another record.
    control.keep_decision(replace(acceptance, what=ACCEPT, about=what))
    reach(FaultPoint.ACCEPT_PLANNED)

    def attempt(head: BindingsHead) -> None:
        planned = [
            replace(one, who=acceptance.who, reason=acceptance.reason, at=acceptance.at, is_planned=True)
            for one in unplanned_losses(control)
        ]
        if planned:
            control.replace_losses(head, planned)

    retry_outpaced(control.bindings_head, attempt)


def accept(control: LogControl, gate: LogGate, acceptance: AuditEntry) -> None:
    """Record the accepted losses and open the gate; raises ``GateChanged`` where the gate is another one
    now.
    """
    if gate.losses:
        _record(control, gate, acceptance)
        reach(FaultPoint.ACCEPT_RECORDED)
    elif gate.partitions:
        _record_partitions(control, gate)
        reach(FaultPoint.ACCEPT_RECORDED)
    if not control.open_gate(gate, replace(acceptance, what=ACCEPT, about=gate.reason)):
        raise GateChanged(control.pipeline, gate)
    reach(FaultPoint.ACCEPT_OPENED)


def _record(control: LogControl, gate: LogGate, acceptance: AuditEntry) -> None:
    def attempt(head: BindingsHead) -> None:
        # The head was read before the gate, so a binding made since makes the compare-and-set fail.
        closed = control.log_gate()
        if closed is None or not closed.is_about(gate):
            return
        losses = with_last_bound(
            control, [_accepted(control, head, closed, loss, acceptance) for loss in closed.losses]
        )
        known = {one.row for one in control.accepted_losses()}
        if not all(one.row in known for one in losses):
            control.record_losses(head, losses)

    retry_outpaced(control.bindings_head, attempt)


def _record_partitions(control: LogControl, gate: LogGate) -> None:
    def attempt(head: BindingsHead) -> None:
        closed = control.log_gate()
        if closed is None or not closed.is_about(gate):
            return
        found = {one.topic: one.found for one in gate.partitions if one.topic in head.partitions}
        fixed = {topic: head.partitions[topic]._replace(accepted=count) for topic, count in found.items()}
        if not fixed.items() <= head.partitions.items():
            control.replace_head(head, replace(head, partitions={**head.partitions, **fixed}))

    retry_outpaced(control.bindings_head, attempt)


def _accepted(
    control: LogControl, head: BindingsHead, gate: LogGate, loss: Loss, acceptance: AuditEntry
) -> AcceptedLoss:
    if gate.t is not None:
        after = ids_of(Bindings(control).at(gate.t), loss)[0] - 1
    else:
        after = Bindings(control).at(head.newest).end if head.newest is not None else NOTHING_YET
    operator = (acceptance.who, acceptance.reason, acceptance.at)
    return AcceptedLoss(loss, gate.t, after, *operator, found=gate.at, is_planned=True)
