"""The life of a rendition apart from handovers and its end: one function a step, each a compare-and-set.

All are idempotent: a run repeats a step after a crash or an unknown outcome with the same values. What a step
compares is read after the output and before the commit, so it is never older than what it decides on. No
step here builds or compares rows.
"""

from collections.abc import Callable

from tidemark.faults import FaultPoint, reach
from tidemark.outputs.model import lifecycle
from tidemark.outputs.model.evidence import Taint, VerificationEvidence
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, RenditionState, Signature
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Consumers

_IN_USE = frozenset({RenditionState.BUILDING, RenditionState.VERIFIED, RenditionState.ACTIVE})


def _none_known(output: Output) -> Rendition | None:
    """No rendition is continued but the one of the same proposal."""
    return None


def declare(
    store: OutputStore,
    propose: Callable[[Output], RenditionProposal],
    *,
    known: Callable[[Output], Rendition | None] = _none_known,
    is_automatic: bool = False,
) -> Rendition:
    """Add the next rendition; returns it, or the one that was made of the same proposal before.

    An automatic rebuild gets the newest rendition where that has the settings already and is not given up:
    another run has just declared it.

    Args:
        store: The writer's output.
        propose: What it is to be; called with the output as it is, because its place may depend on the
            number.
        known: The rendition to continue instead of adding one; called with the output as it is, so that of
            two builds at once the second finds the first one's.
        is_automatic: Whether no operator asked for it.
    """

    def decide(output: Output) -> tuple[Output, Rendition]:
        if (continued := known(output)) is not None:
            return output, continued
        proposal, newest = propose(output), output.renditions[-1]
        is_known = is_automatic and newest.state in _IN_USE
        if is_known and newest.settings_digest == proposal.settings_digest:
            return output, newest
        after = lifecycle.declare(output, proposal, is_automatic=is_automatic)
        return after, next(one for one in after.renditions if proposal.is_of(one))

    rendition = store.amend(decide)
    reach(FaultPoint.RENDITION_DECLARED)
    return rendition


def record_verification(store: OutputStore, number: int, evidence: VerificationEvidence) -> Output:
    """Record a clean verification; raises where it does not prove what a handover needs."""
    output = store.change(lambda found: lifecycle.mark_verified(found, number, evidence))
    reach(FaultPoint.RENDITION_VERIFIED)
    return output


def revoke_outdated(store: OutputStore, consumers: Consumers) -> Output:
    """Return every verified rendition to ``building`` whose evidence no longer holds."""

    def decide(output: Output) -> Output:
        active = output.active.number
        for one in output.renditions:
            if one.state is RenditionState.VERIFIED:
                sides = (consumers.state(number).side(number) for number in (one.number, active))
                output = lifecycle.revoke_if_changed(output, one.number, *sides)
        return output

    output = store.change(decide)
    reach(FaultPoint.RENDITION_REVOKED)
    return output


def revoke(store: OutputStore, number: int) -> Output:
    """Return a rendition to ``building`` whose newest comparison has found differences; nothing where it is
    not verified."""
    output = store.change(lambda found: lifecycle.revoke(found, number))
    reach(FaultPoint.RENDITION_REVOKED)
    return output


def record_taint(store: OutputStore, number: int, taint: Taint) -> Output:
    """Freeze a rendition whose recomputation differed. The first difference is kept."""
    output = store.change(lambda found: lifecycle.mark_tainted(found, number, taint))
    reach(FaultPoint.RENDITION_TAINTED)
    return output


def abandon(store: OutputStore, number: int, signed: Signature) -> Output:
    """Give up a rendition that was never active."""
    output = store.change(lambda found: lifecycle.abandon(found, number, signed))
    reach(FaultPoint.RENDITION_ABANDONED)
    return output
