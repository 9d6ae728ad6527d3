"""When a rendition may go, and which times may: what no reader holds.

A rendition may go when it is not active, and every capability is later than the end of its last interval.
Retiring takes steps on two objects: first ``forget_times_of`` on the readers, then ``begin_retire`` on the
output, then the place is dropped, then ``mark_dropped``. A crash between any two leaves a state from which
the same steps go on. This module decides; it drops nothing.
"""

from dataclasses import replace
from typing import NamedTuple

from tidemark.outputs.errors import StillActive
from tidemark.outputs.model.capability import Capability, Readers, raise_since
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import GONE, Rendition, RenditionState

_LEFT = frozenset({RenditionState.SUPERSEDED, RenditionState.ABANDONED, RenditionState.TAINTED})


def forget_times_of(readers: Readers, output: Output, number: int, now: int) -> Readers:
    """Raise ``since`` to the end of a rendition's use; raises ``StillNeeded`` where a reader holds it.

    Times of other renditions before that end are forgotten with it: ``since`` is one bound for all. A
    rendition that was never active has no time to forget.
    """
    if output.active.number == number:
        raise StillActive(output.pipeline, output.writer, number)
    end = output.end_of_use(number)
    return readers if end is None else raise_since(readers, end, now)


def retirable(output: Output, readers: Readers, now: int) -> list[Rendition]:
    """The renditions that could be retired now, oldest first: for plans. Retiring checks each again."""
    first = readers.earliest(now)
    found = []
    for one in output.renditions:
        if one.state in _LEFT and one.number != output.active.number:
            end = output.end_of_use(one.number)
            # As in ``raise_since``: times that are forgotten already need no reader's consent.
            if end is None or end <= readers.since or first is None or first.t > end:
                found.append(one)
    return found


def may_drop_place(output: Output, number: int) -> bool:
    """Whether the place of a rendition may be dropped: only once its row says so durably."""
    return output.rendition(number).state in GONE


class Forgettable(NamedTuple):
    """Up to where times may be forgotten that are older than a writer keeps them.

    Attributes:
        since: The first time that stays readable.
        held_by: The reader because of which it is not later; None where no reader holds an older time.
    """

    since: int
    held_by: Capability | None


def forgettable(readers: Readers, frontier: int, cut: int, now: int) -> Forgettable:
    """The newest ``since`` at or below ``cut`` that leaves every reader its times, and one readable time.

    It never goes back: where a reader holds it, or ``cut`` is older, it is the present one.
    """
    wanted, first = min(cut, frontier - 1), readers.earliest(now)
    if first is not None and first.t <= wanted:
        return Forgettable(max(readers.since, first.t - 1), first)
    return Forgettable(max(readers.since, wanted), None)


def forget_older(readers: Readers, frontier: int, cut: int, now: int) -> Readers:
    """Raise ``since`` as far as ``cut`` and the readers allow."""
    return raise_since(readers, forgettable(readers, frontier, cut, now).since, now)


def mark_trimmed(output: Output, number: int, since: int) -> Output:
    """Record that a rendition has no version left that no time from ``since`` on sees."""
    rendition = output.rendition(number)
    return output.with_rendition(replace(rendition, trimmed=max(rendition.trimmed, since)))
