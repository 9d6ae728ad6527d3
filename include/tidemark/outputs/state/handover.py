"""Handover and rollback: readers take another rendition, from the frontier on.

One compare-and-set of the output writes the handover, both states and the new frontier. What is judged (the
gate, the upper, what the evidence was based on) is read after the output and before the commit; where
another process changes the output in between, all is read again.

The rendition that enters must have finished a time that no reader could read yet. Where both renditions have
finished everything and nothing is bound, there is none: then a microsecond is let pass, by a step of the
bindings' ``upper``, instead of waiting for messages. Where something is bound, the caller has to deliver it
to the entering rendition alone: the frontier follows the leaving one, and waits at a binding that it lacks.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tidemark.consensus.update import ReadAgain
from tidemark.faults import FaultPoint, reach
from tidemark.outputs.model import handover
from tidemark.outputs.model.evidence import VerificationEvidence
from tidemark.outputs.model.handover import HandoverOutOfRange
from tidemark.outputs.model.lifecycle import mark_verified
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress

Details = Callable[[], Mapping[str, Any]]
"""Reads ``Handover.details``; called in every attempt."""


def hand_over(
    store: OutputStore,
    progress: Progress,
    number: int,
    signed: Signature,
    *,
    force: bool = False,
    proof: VerificationEvidence | None = None,
    details: Details = dict,
    soak: int | None = None,
) -> Handover:
    """Make a verified rendition the active one; returns the handover.

    Where it is active already, the handover that made it so is returned: its signature tells whose it was.

    Args:
        store: The writer's output.
        progress: How far its renditions have come.
        number: The rendition that readers will use.
        signed: Who hands over, and why.
        force: Hand over without valid evidence.
        proof: The evidence of a comparison since which the caller holds the leases of both. The rendition may
            be ahead of it, because the caller has delivered to it alone. It counts also where a process that
            found the rendition ahead has withdrawn it.
        details: Reads ``Handover.details``.
        soak: See ``Handover.soak``.
    """

    def decide(output: Output) -> Output:
        active = output.active.number
        standing, state = progress.standing(number)
        side = state.side(number)
        if proof is not None:
            output = mark_verified(output, number, proof)
            side = replace(side, position=proof.candidate.position)
        sides = side, progress.consumers.state(active).side(active)
        return handover.hand_over(
            output, number, standing, sides, signed, force=force, details=details(), soak=soak
        )

    return _committed(store, progress, number, signed, decide)


def roll_back(
    store: OutputStore, progress: Progress, number: int, signed: Signature, *, details: Details = dict
) -> Handover:
    """Make a superseded rendition the active one again; returns the handover, as ``hand_over`` does."""

    def decide(output: Output) -> Output:
        standing, _ = progress.standing(number)
        return handover.roll_back(output, number, standing, signed, details=details())

    return _committed(store, progress, number, signed, decide)


def _committed(
    store: OutputStore,
    progress: Progress,
    number: int,
    signed: Signature,
    decide: Callable[[Output], Output],
) -> Handover:
    def attempt(output: Output) -> tuple[Output, Handover]:
        if (done := _found(output, number, signed)) is not None:
            return output, done
        try:
            after = decide(output)
        except HandoverOutOfRange as refused:
            is_idle = refused.h == refused.upper and not progress.is_bound_at(refused.h)
            if not is_idle or refused.h < refused.since:
                raise
            progress.let_time_pass(refused.h + 1)
            reach(FaultPoint.HANDOVER_UPPER_ADVANCED)
            raise ReadAgain from None
        return after, after.handovers[-1]

    done = store.amend(attempt)
    reach(FaultPoint.HANDOVER_COMMITTED)
    return done


def _found(output: Output, number: int, signed: Signature) -> Handover | None:
    """The handover that this step has made before, or that made the rendition active."""
    newest = output.handovers[-1]
    own = (one for one in output.handovers if one.rendition == number and one.signed == signed)
    return next(own, newest if newest.rendition == number else None)
