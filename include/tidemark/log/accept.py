"""accept: a named person lets the log go on over what closed its gate, and everything about it is kept.

Lost offsets become holes that are on record for ever; a capture that failed its audit may be published as it
is. Nothing is repaired here, and a gate that closed for another reason in the meantime stays closed.
"""

from dataclasses import dataclass

from tidemark.consensus.objects import Outpaced
from tidemark.errors import TidemarkError
from tidemark.faults import FaultPoint, reach
from tidemark.log.bind import OffsetsLost
from tidemark.log.binding import NOTHING_YET
from tidemark.log.control import Decision, LogControl
from tidemark.log.gate import Cause, LogGate
from tidemark.log.loss import AcceptedLoss, Loss, said


class NothingToAccept(TidemarkError):
    """The log's gate is open."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"{pipeline}: the log's gate is open, so there is nothing to accept. Nothing was changed. "
            f"See: tidemark status {pipeline}"
        )
        self.pipeline = pipeline


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Who accepts what closed the gate, and why."""

    who: str
    reason: str
    at: int
    """µs."""


def close_for_losses(control: LogControl, lost: OffsetsLost, now: int) -> LogGate:
    """Close the log's gate over offsets that Kafka no longer has."""
    ids = None
    if lost.t is not None:
        binding = control.binding(lost.t)
        owned = [
            (binding.id_of(*loss.place, loss.lower), binding.id_of(*loss.place, loss.upper - 1))
            for loss in lost.losses
        ]
        ids = (min(first for first, _ in owned), max(last for _, last in owned))
    reason = f"records are lost: {said(lost.losses)}"
    gate = control.close_gate(LogGate(Cause.LOST, reason, lost.t, ids, lost.losses, None, now))
    reach(FaultPoint.GATE_CLOSED)
    return gate


def require_closed_gate(control: LogControl) -> LogGate:
    """What there is to accept; refuses an open gate."""
    gate = control.log_gate()
    if gate is None:
        raise NothingToAccept(control.pipeline)
    return gate


def accept(control: LogControl, gate: LogGate, acceptance: Acceptance) -> None:
    """Let the log go on over what this gate says; doing it again changes nothing."""
    if gate.losses:
        _record(control, gate, acceptance)
        reach(FaultPoint.ACCEPT_RECORDED)
    decision = Decision("accept", acceptance.who, acceptance.reason, acceptance.at, gate.reason)
    control.open_gate(gate, decision)
    reach(FaultPoint.ACCEPT_OPENED)


def _record(control: LogControl, gate: LogGate, acceptance: Acceptance) -> None:
    while True:
        head = control.bindings_head()
        newest = control.binding(head.newest).end if head.newest is not None else NOTHING_YET
        known = {one.row for one in control.accepted_losses()}
        losses = [
            AcceptedLoss(
                loss=loss,
                t=gate.t,
                after=_id_before(control, gate.t, loss, newest),
                who=acceptance.who,
                reason=acceptance.reason,
                at=acceptance.at,
            )
            for loss in gate.losses
        ]
        if all(one.row in known for one in losses):
            return
        try:
            return control.record_losses(head, losses)
        except Outpaced:
            continue


def _id_before(control: LogControl, t: int | None, loss: Loss, newest: int) -> int:
    """The last id before the place where the lost messages would have been."""
    return newest if t is None else control.binding(t).id_of(*loss.place, loss.lower) - 1
