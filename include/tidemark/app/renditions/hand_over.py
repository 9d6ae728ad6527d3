"""Handover and rollback of a writer's readers, with everything that a command or a task has to do for it.

A rendition is compared again directly before a handover, under the leases of both consumers, unless its
evidence still holds: between a verification and the answer of the operator who read it, deliveries go on. So
what is handed over is what was compared, whatever happened in between, and a difference that appeared
meanwhile refuses the handover. Deliveries to both renditions wait as long as that takes.

Under these leases a handover also comes to its end, however fast messages arrive and readers advance the
frontier: the rendition that enters gets the next binding before the other one does. A forced handover and a
rollback take the leases only where they need that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

from tidemark.app.rendition_verification import HeldRenditions, both_held, renditions_held
from tidemark.app.renditions.held_delivery import HandoverTools, HeldDelivery
from tidemark.app.renditions.neighbours import place_of
from tidemark.app.renditions.opened import UNFINISHED, WriterRenditions
from tidemark.app.renditions.plan import RenditionAction, RenditionPlan
from tidemark.clock import SECOND
from tidemark.consensus.lease_wait import attempts
from tidemark.errors import TidemarkError, with_fields
from tidemark.kafka.consumer import READ_COMMITTED
from tidemark.kafka.offsets import looking_at_topics
from tidemark.outputs.errors import DifferencesUnexplained, TransitionRefused
from tidemark.outputs.model.evidence import VerificationEvidence, VerificationMode
from tidemark.outputs.model.handover import (
    AlreadyActive,
    GateNotOpen,
    HandoverOutOfRange,
    NothingReadable,
    refuse_unreadable,
)
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.model.rendition import Rendition, RenditionState, Signature
from tidemark.outputs.state import handover
from tidemark.writers.kafka.kind import KafkaDeclaration

NEXT_OFFSETS = "next_offsets"
"""The key of ``Handover.details`` with the next offsets of a kafka writer's topics, by rendition."""
PATIENCE = 60.0
"""Seconds to wait, with both leases, until a binding is published at which readers wait already."""
_CATCHES_UP = "it gets first what the active rendition has and it lacks"


@with_fields
class ReadersLeft(TidemarkError):
    """A handover to a rendition that readers have left: a return is another action."""

    needs_person = True

    pipeline: str
    writer: str
    number: int

    text = (
        "{pipeline}/{writer}: readers have used rendition {number} before, so nothing is handed over to it. "
        "Readers stay where they are. Return to it: tidemark renditions rollback {pipeline} {writer} {number}"
    )


def default_mode(renditions: WriterRenditions) -> VerificationMode:
    """How a rendition is verified where nothing else is asked for: by the rules, where the file has some."""
    return VerificationMode.EXPLAINED if renditions.declared.expect else VerificationMode.EXACT


@dataclass(frozen=True)
class HandingOver:
    """One handover.

    Attributes:
        renditions: The renditions of the writer.
        number: The rendition that readers will use.
        force: Hand over without evidence; every other condition holds.
        mode: How it is compared; None: as its evidence says, else ``default_mode``.
        soak: How long the other one is delivered to afterwards; None: as long as the file says.
        patience: Seconds, see ``PATIENCE``.
    """

    renditions: WriterRenditions
    number: int
    force: bool = False
    mode: VerificationMode | None = None
    soak: timedelta | None = None
    patience: float = PATIENCE

    def plan(self) -> RenditionPlan:
        """From when on readers would take which rendition, and on what grounds. Read-only."""
        of, output = self.renditions, self.renditions.output
        candidate, active = output.rendition(self.number), output.active
        lines = _switch_lines(output, candidate)
        if self.is_behind and not self.force:
            lines += [_CATCHES_UP]
        lines += [self._grounds(output, candidate)]
        lines += [
            f"rendition {active.number} is delivered to for another {self._soak} (`soak`), so that "
            f"readers can return to it: tidemark renditions rollback {of.pipeline} {of.writer}"
        ]
        details = {"h": output.frontier, "active": active.number, "forced": self.force}
        refused = self._refusal(output, candidate)
        return _plan(of, RenditionAction.HANDOVER, self.number, lines, details, refused)

    def found(self) -> Handover | None:
        """The handover that an earlier attempt has made: there is one to each rendition, and every later one
        is a return to it."""
        handovers = self.renditions.output.handovers
        return next((one for one in handovers if one.rendition == self.number), None)

    @property
    def is_behind(self) -> bool:
        """Whether it lacks what the active rendition has: then it is delivered to first."""
        return _is_behind(self.renditions, self.number)

    def previous(self, done: Handover) -> int:
        """The rendition that readers used before a handover."""
        handovers = self.renditions.output.handovers
        return handovers[handovers.index(done) - 1].rendition

    def carry_out(self, signed: Signature, tools: HandoverTools | None = None) -> Handover:
        """Hand over; repeating it returns the handover, whether readers still use the rendition or not.

        ``tools`` say where the work is done; None: in this process.
        """
        of, output = self.renditions, self.renditions.output
        if (done := self.found()) is not None:
            return done
        if (refused := self._refusal(output, output.rendition(self.number))) is not None:
            raise refused
        tools = tools or HandoverTools()
        if self.force:
            commit = partial(self._commit, signed, None)
            return _committed_in_range(of, self.number, commit, tools, self.patience)
        with renditions_held(of.opened, of.writer, self.number, clock=of.clock) as held:
            delivery = HeldDelivery(held, tools)
            delivery.level()
            if not self.is_proven():
                self._prove(held, tools)
            proof = of.output.rendition(self.number).evidence
            offsets = next_offsets(of, self.number)  # while both have the same messages
            return _committed_ahead(delivery, lambda: self._commit(signed, proof, offsets), self.patience)

    def _commit(
        self,
        signed: Signature,
        proof: VerificationEvidence | None = None,
        offsets: Mapping[str, Any] | None = None,
    ) -> Handover:
        of = self.renditions
        return handover.hand_over(
            of.store,
            of.progress,
            self.number,
            # The soak begins here: what was delivered and compared before may have taken hours.
            replace(signed, at=of.clock()) if signed.is_complete else signed,
            force=self.force,
            proof=proof,
            details=lambda: next_offsets(of, self.number) if offsets is None else offsets,
            soak=None if self.soak is None else int(self.soak.total_seconds() * SECOND),
        )

    @property
    def _soak(self) -> timedelta:
        return self.renditions.declared.soak if self.soak is None else self.soak

    def is_proven(self) -> bool:
        """Whether its evidence still holds: nothing has moved since."""
        of, output = self.renditions, self.renditions.output
        candidate, consumers = output.rendition(self.number), of.consumers
        if candidate.state is not RenditionState.VERIFIED or candidate.evidence is None:
            return False
        if self.mode not in (None, candidate.evidence.mode):
            return False
        numbers = self.number, output.active.number
        now = [consumers.state(number).side(number) for number in numbers]
        return not candidate.evidence.changes(*now)

    def _prove(self, held: HeldRenditions, tools: HandoverTools) -> None:
        of, mode = self.renditions, self._mode(self.renditions.output.rendition(self.number))
        report = held.verify(mode, session=tools.session)
        if not report.is_clean:
            counts = report.differences, report.explained
            raise DifferencesUnexplained(of.pipeline, of.writer, self.number, *counts)

    def _mode(self, candidate: Rendition) -> VerificationMode:
        if self.mode is not None:
            return self.mode
        return candidate.evidence.mode if candidate.evidence else default_mode(self.renditions)

    def _grounds(self, output: Output, candidate: Rendition) -> str:
        if self.force:
            return "nothing is compared: --force hands over without evidence"
        mode = self._mode(candidate)
        if self.is_proven():
            return f"verified ({mode}), and nothing has changed since"
        return (
            f"compared with rendition {output.active.number} ({mode}) directly before; deliveries to both "
            "wait meanwhile, and an unexplained difference refuses the handover"
        )

    def _refusal(self, output: Output, candidate: Rendition) -> TidemarkError | None:
        if output.active.number == self.number:
            return AlreadyActive(output.pipeline, output.writer, self.number)
        if candidate.state is RenditionState.SUPERSEDED:
            return ReadersLeft(output.pipeline, output.writer, self.number)
        if candidate.state not in UNFINISHED:
            wanted = RenditionState.ACTIVE
            return TransitionRefused(output.pipeline, output.writer, self.number, candidate.state, wanted)
        return _usual_refusal(self.renditions, self.number)


@dataclass(frozen=True)
class RollingBack:
    """A return of readers to a rendition that they used before.

    Attributes:
        renditions: The renditions of the writer.
        number: The rendition; None: the one that was active before the present one.
        patience: Seconds, see ``PATIENCE``.
    """

    renditions: WriterRenditions
    number: int | None = None
    patience: float = PATIENCE

    def plan(self) -> RenditionPlan:
        """From when on readers would take which rendition again. Read-only."""
        of, output = self.renditions, self.renditions.output
        number = self._target(output)
        candidate = output.rendition(number)
        lines = _switch_lines(output, candidate)
        lines += ["what readers have read until then is not rewritten, and nothing is compared"]
        if self.is_behind:
            lines += [_CATCHES_UP]
        details = {"h": output.frontier, "active": output.active.number}
        refused = self._refusal(output, candidate)
        return _plan(of, RenditionAction.ROLLBACK, number, lines, details, refused)

    @property
    def is_behind(self) -> bool:
        """Whether it lacks what the active rendition has, such as after its soak: then it is delivered to
        first."""
        return _is_behind(self.renditions, self._target(self.renditions.output))

    def carry_out(self, signed: Signature, tools: HandoverTools | None = None) -> Handover:
        """Return to it; repeating it with the same signature returns the handover. See ``HandingOver``."""
        of, output = self.renditions, self.renditions.output
        done = (one for one in output.handovers if one.signed == signed)
        if (found := next((one for one in done if self.number in (None, one.rendition)), None)) is not None:
            return found
        number = self._target(output)
        if (refused := self._refusal(output, output.rendition(number))) is not None:
            raise refused

        def commit(offsets: Mapping[str, Any] | None = None) -> Handover:
            return handover.roll_back(
                of.store,
                of.progress,
                number,
                signed,
                details=lambda: next_offsets(of, number) if offsets is None else offsets,
            )

        return _committed_in_range(of, number, commit, tools or HandoverTools(), self.patience)

    def _target(self, output: Output) -> int:
        """The given rendition, else the one before the active one in the handovers."""
        if self.number is not None:
            return output.rendition(self.number).number
        active = output.active.number
        earlier = (one.rendition for one in reversed(output.handovers) if one.rendition != active)
        found = next(earlier, None)
        if found is None:
            raise AlreadyActive(output.pipeline, output.writer, active)
        return found

    def _refusal(self, output: Output, candidate: Rendition) -> TidemarkError | None:
        if output.active.number == candidate.number:
            return AlreadyActive(output.pipeline, output.writer, candidate.number)
        if candidate.state is not RenditionState.SUPERSEDED:
            wanted, state = RenditionState.ACTIVE, candidate.state
            return TransitionRefused(output.pipeline, output.writer, candidate.number, state, wanted)
        return _usual_refusal(self.renditions, candidate.number)


class CommitHandover(Protocol):
    """Commits a handover; raises ``HandoverOutOfRange``."""

    def __call__(self, offsets: Mapping[str, Any] | None = None) -> Handover:
        """``offsets`` are its details where they are known; None: they are read."""


def _committed_in_range(
    of: WriterRenditions, number: int, commit: CommitHandover, tools: HandoverTools, patience: float
) -> Handover:
    """Commit a handover that compares nothing: at once where that is possible, else under both leases.

    An operator who returns from a rendition must not wait for a long delivery to it.
    """
    try:
        return commit()
    except HandoverOutOfRange as refused:
        if refused.h < refused.since:
            raise
    with both_held(
        of.opened, of.writer, number, holder=f"handover {uuid4().hex[:8]}", clock=of.clock
    ) as held:
        delivery = HeldDelivery(held, tools)
        delivery.level()
        offsets = next_offsets(of, number)  # while both have the same messages
        return _committed_ahead(delivery, lambda: commit(offsets), patience)


def _committed_ahead(delivery: HeldDelivery, commit: Callable[[], Handover], patience: float) -> Handover:
    """Commit a handover under both leases; the rendition gets more of the log where readers may ask for more
    than it has, and a binding that is not published yet is waited for."""
    for is_last in attempts(patience):
        while True:
            try:
                return commit()
            except HandoverOutOfRange as refused:
                if refused.h < refused.since or delivery.is_behind:
                    raise
                if delivery.go_ahead():
                    continue
                if is_last:
                    raise
                break
    raise AssertionError("never reached")


def next_offsets(renditions: WriterRenditions, number: int) -> Mapping[str, Any]:
    """For a kafka writer, the next offsets of the topics of both renditions: where consumers leave the old
    topic, and where the new one was. Empty for other kinds."""
    found = {}
    # The new one first: deliveries between both reads, which bring the active one first, can only make it
    # behind. A consumer that switches then gets some messages twice; in the other order it would miss them.
    for one in (number, renditions.output.active.number):
        declared = place_of(renditions, renditions.output.rendition(one))
        if not isinstance(declared, KafkaDeclaration):
            return {}
        connection = renditions.opened.connections.kafka_targets[declared.connection]
        with looking_at_topics(connection, READ_COMMITTED) as topics:
            offsets = topics.offsets([declared.topic])
        found[str(one)] = {str(partition): end for (_, partition), (_, end) in sorted(offsets.items())}
    return {NEXT_OFFSETS: found}


def _is_behind(of: WriterRenditions, number: int) -> bool:
    """Whether a rendition lacks what the active one has."""
    active = of.consumers.state(of.output.active.number)
    return of.consumers.state(number).position < active.position


def _switch_lines(output: Output, candidate: Rendition) -> list[str]:
    return [
        f"readers take rendition {candidate.number} ({candidate.place}) from {output.frontier} on, instead "
        f"of rendition {output.active.number} ({output.active.place})"
    ]


def _usual_refusal(renditions: WriterRenditions, number: int) -> TidemarkError | None:
    try:
        refuse_unreadable(renditions.output)
    except NothingReadable as refused:
        return refused
    if renditions.consumers.state(number).is_gate_open:
        return None
    return GateNotOpen(renditions.pipeline, renditions.writer, number)


def _plan(
    of: WriterRenditions,
    action: RenditionAction,
    number: int,
    lines: list[str],
    details: Mapping[str, Any],
    refused: TidemarkError | None,
) -> RenditionPlan:
    changes = not isinstance(refused, AlreadyActive)
    return RenditionPlan(
        action,
        of.pipeline,
        of.writer,
        number,
        tuple(lines),
        details,
        refused if changes else None,
        changes,
    )
