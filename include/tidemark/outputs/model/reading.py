"""What a reader may ask for, and what it gets across handovers.

A reader needs three things to judge a time: its own capability, a clock, and an output as it was at any
moment. An old output is enough for every time before its frontier, because history is not rewritten. A
refusal is a typed error; a wrong answer is not possible. Nothing here reads rows: ``CollectionRows`` does.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from tidemark.outputs.model.capability import Capability
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition
from tidemark.outputs.model.updates import RowCounts, RowUpdate, difference
from tidemark.outputs.reader_errors import Forgotten, ReaderExpired


class CollectionRows(Protocol):
    """The rows of renditions. It is asked only for times that the rendition has finished."""

    def state(self, rendition: Rendition, at: int) -> RowCounts:
        """The state at a time, all updates at that time included."""

    def updates(self, rendition: Rendition, first: int, end: int) -> Iterable[RowUpdate]:
        """The updates from ``first`` (included) to ``end`` (excluded), in the order of their times."""


def check_readable(output: Output, capability: Capability, t: int, now: int) -> Rendition:
    """The rendition to read the state at ``t`` from.

    Raises ``ReaderExpired`` once the deadline has passed (the holder renews before that), ``Forgotten`` below
    the capability, whatever older times others still hold, ``NotYet`` from the frontier on, and ``Tainted``
    instead of ``NotYet`` where the frontier is frozen.
    """
    _refuse_unusable(output, capability, now)
    if t < capability.t:
        raise Forgotten(output.pipeline, output.writer, t, capability.t)
    return output.resolve(t)


def check_followable(output: Output, capability: Capability, after: int, since: int, now: int) -> None:
    """Raise where the changes after a time cannot be given.

    They continue the state at ``after``. A reader that has all changes before its capability *t* may
    therefore ask for those after *t* − 1. ``since`` is that of the readers object, as it was when the reader
    registered or later: a capability exactly at ``since`` has no state before it.
    """
    _refuse_unusable(output, capability, now)
    first = max(capability.t - 1, since)
    if after < first:
        raise Forgotten(output.pipeline, output.writer, after, first)


def changes(output: Output, rows: CollectionRows, after: int) -> Iterator[RowUpdate]:
    """The updates after a time and before the frontier, in the order of their times.

    Added to the state at ``after`` they give the state at every later time. At a handover at *h* they are the
    difference between the new rendition at *h* and the old one before *h*. Updates of the old one from *h* on
    are never forwarded: the new one contains their messages.
    """
    previous: Rendition | None = None
    for begin, end, number in output.intervals:
        rendition, first = output.rendition(number), max(begin, after + 1)
        if first < end:
            if previous is not None and first == begin:
                before, at = rows.state(previous, begin - 1), rows.state(rendition, begin)
                yield from difference(begin, before, at)
                first = begin + 1
            yield from rows.updates(rendition, first, end)
        previous = rendition


def activity(output: Output) -> list[RowUpdate]:
    """Which rendition is active, as updates: at each handover the old number disappears and the new one
    appears, at the same time."""
    found, before = [], None
    for begin, _, number in output.intervals:
        if before is not None:
            found.append(RowUpdate(before, begin, -1))
        found.append(RowUpdate(number, begin, 1))
        before = number
    return found


def _refuse_unusable(output: Output, capability: Capability, now: int) -> None:
    if not capability.is_usable_at(now):
        raise ReaderExpired(output.pipeline, output.writer, capability.reader)
