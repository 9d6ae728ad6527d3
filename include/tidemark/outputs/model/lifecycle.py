"""The life of a rendition apart from handovers: declared, verified, abandoned, tainted, retired.

Each function takes an output and returns the changed one, or raises and changes nothing. All are idempotent:
a step whose result is there already returns the output as it is, so that a run can repeat a step after a
crash. No function here moves the frontier or changes what a reader gets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidemark.outputs.errors import (
    DifferencesUnexplained,
    NotCaughtUp,
    NotCompared,
    NotForgotten,
    PlaceTaken,
    ReasonMissing,
    SettingsUsedBefore,
    StillActive,
    TransitionRefused,
)
from tidemark.outputs.model.evidence import ComparedSide, Taint, VerificationEvidence
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, RenditionState, Signature, settings_digest

_USED = frozenset({RenditionState.ACTIVE, RenditionState.SUPERSEDED})


@dataclass(frozen=True, slots=True)
class RenditionProposal:
    """What a new rendition is to be; the fields are those of ``Rendition``.

    The caller derives ``place`` from ``Output.next_number``, where the pipeline file does not give it.
    """

    settings: Mapping[str, Any]
    place: str
    since: int
    signed: Signature
    code: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings_digest(self) -> str:
        """As ``Rendition.settings_digest``."""
        return settings_digest(self.settings, self.code)

    def rendition(self, number: int, state: RenditionState) -> Rendition:
        """The rendition that is made of it."""
        return Rendition(number, state, self.settings, self.place, self.since, self.signed, self.code)

    def is_of(self, rendition: Rendition) -> bool:
        """Whether the rendition was made from this proposal; the place may be derived from another number."""
        return self.signed == rendition.signed and self.settings_digest == rendition.settings_digest


def declare(output: Output, proposal: RenditionProposal, *, is_automatic: bool = False) -> Output:
    """Add the next rendition. ``is_automatic``: no operator asked for it.

    Automatic rebuilds never return to settings that a rendition had: during a rollout, two versions of a file
    would rebuild against each other.
    """
    refuse_unsigned(output, proposal.signed, "build")
    if any(proposal.is_of(one) for one in output.renditions):
        return output
    for one in output.renditions:
        if is_automatic and one.settings_digest == proposal.settings_digest:
            raise SettingsUsedBefore(output.pipeline, output.writer, one.number)
        if one.place == proposal.place:
            raise PlaceTaken(output.pipeline, output.writer, proposal.place, one.number)
    made = proposal.rendition(output.next_number, RenditionState.BUILDING)
    return replace(output, next_number=made.number + 1, renditions=(*output.renditions, made))


def abandon(output: Output, number: int, signed: Signature) -> Output:
    """Give up a rendition that was never active."""
    rendition = output.rendition(number)
    if rendition.state is RenditionState.ABANDONED:
        return output
    refuse_unsigned(output, signed, "abandon")
    return output.with_rendition(replace(moved(output, number, RenditionState.ABANDONED), abandoned=signed))


def mark_verified(output: Output, number: int, evidence: VerificationEvidence) -> Output:
    """Record a clean verification; raises where it does not prove what a handover needs.

    Repeating it after a handover that was based on it changes nothing.
    """
    found = output.rendition(number)
    if found.evidence == evidence and found.state in _USED:
        return output
    verified = replace(moved(output, number, RenditionState.VERIFIED), evidence=evidence)
    active, compared = output.active.number, (evidence.candidate.number, evidence.active.number)
    if compared != (number, active):
        raise NotCompared(output.pipeline, output.writer, number, active, compared)
    positions = evidence.candidate.position, evidence.active.position
    if positions[0] < positions[1]:
        raise NotCaughtUp(output.pipeline, output.writer, number, *positions)
    if not evidence.is_clean:
        counts = evidence.differences, evidence.explained
        raise DifferencesUnexplained(output.pipeline, output.writer, number, *counts)
    return output.with_rendition(verified)


def revoke_if_changed(output: Output, number: int, candidate: ComparedSide, active: ComparedSide) -> Output:
    """Return a verified rendition to ``building`` where its evidence no longer holds.

    ``candidate`` and ``active`` are the two renditions as they are now.
    """
    rendition = output.rendition(number)
    if rendition.state is not RenditionState.VERIFIED or rendition.evidence is None:
        return output
    if not rendition.evidence.changes(candidate, active):
        return output
    return revoke(output, number)


def revoke(output: Output, number: int) -> Output:
    """Return a verified rendition to ``building``: a later comparison has found differences."""
    if output.rendition(number).state is not RenditionState.VERIFIED:
        return output
    return output.with_rendition(replace(moved(output, number, RenditionState.BUILDING), evidence=None))


def mark_tainted(output: Output, number: int, taint: Taint) -> Output:
    """Freeze a rendition whose recomputation differed. The first difference is kept.

    An active rendition stays the one that readers use below the frontier, which no longer moves.
    """
    if output.rendition(number).taint is not None:
        return output
    return output.with_rendition(replace(moved(output, number, RenditionState.TAINTED), taint=taint))


def begin_retire(output: Output, number: int, since: int, signed: Signature) -> Output:
    """Take a rendition out of use for good. ``since`` is that of the readers object, raised before.

    It may be an old value: it never goes back. The end of the rendition's use may have moved on since, by a
    return to it, and is therefore compared here again.
    """
    rendition = output.rendition(number)
    if rendition.state in (RenditionState.RETIRING, RenditionState.DROPPED):
        return output
    refuse_unsigned(output, signed, "retire")
    if output.active.number == number:
        raise StillActive(output.pipeline, output.writer, number)
    end = output.end_of_use(number)
    if end is not None and since < end:
        raise NotForgotten(output.pipeline, output.writer, number, end, since)
    return output.with_rendition(replace(moved(output, number, RenditionState.RETIRING), retired=signed))


def mark_dropped(output: Output, number: int) -> Output:
    """Record that the place of a retiring rendition is gone. Number and place stay reserved."""
    if output.rendition(number).state is RenditionState.DROPPED:
        return output
    return output.with_rendition(moved(output, number, RenditionState.DROPPED))


def moved(output: Output, number: int, state: RenditionState) -> Rendition:
    """A rendition in another state; raises ``TransitionRefused`` where it may not follow the present one."""
    rendition = output.rendition(number)
    if not rendition.may_become(state):
        raise TransitionRefused(output.pipeline, output.writer, number, rendition.state, state)
    return replace(rendition, state=state)


def refuse_unsigned(output: Output, signed: Signature, action: str) -> None:
    """Raise ``ReasonMissing`` where an action has no author or no reason."""
    if not signed.is_complete:
        raise ReasonMissing(output.pipeline, output.writer, action)
