"""Handovers: from which time on readers take which rendition, and how far they may read.

A handover is always at the frontier, so that no time a reader may have asked for changes its rendition. One
step writes the handover, both states and the new frontier. These are the only functions that move the
frontier, and it never goes back. Nothing here waits, retries or looks anything up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidemark.errors import with_fields
from tidemark.outputs.errors import OutputError, TransitionRefused
from tidemark.outputs.model.evidence import ComparedSide
from tidemark.outputs.model.lifecycle import moved, refuse_unsigned
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.model.rendition import Rendition, RenditionState, Signature


@with_fields
class NotVerified(OutputError):
    """A handover to a rendition that was not verified."""

    pipeline: str
    writer: str
    number: int
    state: str

    text = (
        "{pipeline}/{writer}: rendition {number} is {state}, not verified. Readers stay where they are. "
        "Verify it: tidemark renditions verify {pipeline} {writer} {number}; or add --force --reason."
    )


@with_fields
class EvidenceOutdated(OutputError):
    """What a verification was based on has changed since."""

    pipeline: str
    writer: str
    number: int
    changed: tuple[str, ...]

    @property
    def what(self) -> str:
        """The changes in one line."""
        return ", ".join(self.changed)

    text = (
        "{pipeline}/{writer}: rendition {number} was verified, but this has changed since: {what}. Readers "
        "stay where they are. Verify it again: tidemark renditions verify {pipeline} {writer} {number}"
    )


@with_fields
class GateNotOpen(OutputError):
    """A handover to a rendition whose gate is closed."""

    needs_person = True

    pipeline: str
    writer: str
    number: int

    text = (
        "{pipeline}/{writer}: the gate of rendition {number} is closed, so it would fall behind. Readers "
        "stay where they are. Resume it first: tidemark resume {pipeline} {writer}.r{number}"
    )


@with_fields
class HandoverOutOfRange(OutputError):
    """A rendition cannot answer for the time of the handover."""

    pipeline: str
    writer: str
    number: int
    h: int
    since: int
    upper: int

    text = (
        "{pipeline}/{writer}: a handover now would be at {h}, but rendition {number} is complete from "
        "{since} on and before {upper}. Readers stay where they are. Deliver to it, then try again: tidemark "
        "renditions build {pipeline} {writer} {number}"
    )


@with_fields
class NothingReadable(OutputError):
    """A handover before readers could ask for any time of the active rendition."""

    pipeline: str
    writer: str
    active: int
    h: int

    text = (
        "{pipeline}/{writer}: no time is readable from {h} on, where rendition {active} became active, so no "
        "other rendition can follow it yet. Readers stay where they are. Run {pipeline}.replicate first, "
        "which delivers to the active one."
    )


@with_fields
class AlreadyActive(OutputError):
    """A handover to the rendition that readers use already."""

    pipeline: str
    writer: str
    number: int

    text = "{pipeline}/{writer}: rendition {number} is active already. Nothing was changed."


@with_fields
class NotActive(OutputError):
    """Progress of a rendition that readers do not use (any more)."""

    pipeline: str
    writer: str
    number: int
    active: int

    text = (
        "{pipeline}/{writer}: rendition {number} is not active, {active} is. The frontier was not moved; the "
        "next delivery to the active rendition moves it."
    )


@dataclass(frozen=True, slots=True)
class ConsumerStanding:
    """The consumer of a rendition, read before the handover is decided.

    Attributes:
        upper: ``upper_of`` the rendition. An old value is only too low.
        is_gate_open: Whether its gate is open.
    """

    upper: int
    is_gate_open: bool


def hand_over(
    output: Output,
    number: int,
    consumer: ConsumerStanding,
    now: tuple[ComparedSide, ComparedSide],
    signed: Signature,
    *,
    force: bool = False,
    details: Mapping[str, Any] | None = None,
    soak: int | None = None,
) -> Output:
    """Make a rendition the active one from the frontier on.

    Args:
        output: The output as it is now.
        number: The rendition that readers will use.
        consumer: Its consumer.
        now: That rendition and the active one, as they are now; compared with the evidence.
        signed: Who hands over, and why. Repeating a step with the same signature changes nothing.
        force: Hand over without valid evidence. No other condition can be forced.
        details: See ``Handover.details``.
        soak: See ``Handover.soak``.
    """
    if _is_done(output, number, signed):
        return output
    candidate = _candidate(output, number, signed)
    if not force:
        _refuse_unproven(output, candidate, now)
    evidence = None if force else candidate.evidence
    made = Handover(output.frontier, number, signed, evidence, force, details or {}, soak)
    return _switched(output, made, consumer)


def roll_back(
    output: Output,
    number: int,
    consumer: ConsumerStanding,
    signed: Signature,
    *,
    details: Mapping[str, Any] | None = None,
) -> Output:
    """Return to a superseded rendition: another handover, at the frontier. History is not rewritten.

    It needs no evidence, because readers have used the rendition before; all other conditions hold.
    """
    if _is_done(output, number, signed):
        return output
    candidate = _candidate(output, number, signed)
    if candidate.state is not RenditionState.SUPERSEDED:
        wanted = RenditionState.ACTIVE
        raise TransitionRefused(output.pipeline, output.writer, number, candidate.state, wanted)
    return _switched(output, Handover(output.frontier, number, signed, details=details or {}), consumer)


def advance_frontier(output: Output, number: int, upper: int) -> Output:
    """Let readers read up to ``upper`` of the rendition ``number``, which must be the active one.

    An old value of ``upper`` changes nothing, or too little. A tainted rendition moves no frontier.
    """
    active = output.active
    if active.number != number:
        raise NotActive(output.pipeline, output.writer, number, active.number)
    output.refuse_tainted(active)
    return replace(output, frontier=max(output.frontier, upper))


def refuse_unreadable(output: Output) -> None:
    """Raise ``NothingReadable`` where the active rendition has no readable time: a handover would be at the
    time of the one before."""
    if output.frontier <= output.handovers[-1].h:
        raise NothingReadable(output.pipeline, output.writer, output.active.number, output.frontier)


def _is_done(output: Output, number: int, signed: Signature) -> bool:
    return any(one.rendition == number and one.signed == signed for one in output.handovers)


def _candidate(output: Output, number: int, signed: Signature) -> Rendition:
    refuse_unsigned(output, signed, "handover")
    candidate = output.rendition(number)
    output.refuse_tainted(candidate)
    if output.active.number == number:
        raise AlreadyActive(output.pipeline, output.writer, number)
    refuse_unreadable(output)
    return candidate


def _refuse_unproven(output: Output, candidate: Rendition, now: tuple[ComparedSide, ComparedSide]) -> None:
    if candidate.state is not RenditionState.VERIFIED or candidate.evidence is None:
        raise NotVerified(output.pipeline, output.writer, candidate.number, candidate.state)
    if changed := candidate.evidence.changes(*now):
        raise EvidenceOutdated(output.pipeline, output.writer, candidate.number, changed)


def _switched(output: Output, handover: Handover, consumer: ConsumerStanding) -> Output:
    """The output after a handover; raises where its rendition cannot answer for its time."""
    number = handover.rendition
    entering, leaving = moved(output, number, RenditionState.ACTIVE), output.active
    if not consumer.is_gate_open:
        raise GateNotOpen(output.pipeline, output.writer, number)
    if not entering.since <= handover.h < consumer.upper:
        bounds = entering.since, consumer.upper
        raise HandoverOutOfRange(output.pipeline, output.writer, number, handover.h, *bounds)
    if leaving.state is RenditionState.ACTIVE:
        leaving = moved(output, leaving.number, RenditionState.SUPERSEDED)
    states = {one.number: one for one in (entering, leaving)}
    return replace(
        output,
        frontier=consumer.upper,
        renditions=tuple(states.get(one.number, one) for one in output.renditions),
        handovers=(*output.handovers, handover),
    )
