"""What a reader may ask for, and what it gets across handovers.

A reader needs three things to judge a time: its own capability, a clock, and an output as it was at any
moment. An old output is enough for every time before its frontier, because history is not rewritten. A
refusal is a typed error; a wrong answer is not possible. Nothing here reads rows: ``CollectionRows`` does.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

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


class Switch(NamedTuple):
    """A handover: the changes at ``h`` are what ``after`` has at it, less what ``before`` had before it."""

    h: int
    before: Rendition
    after: Rendition


class Span(NamedTuple):
    """Times from ``first`` (included) to ``end`` (excluded) whose changes are those of one rendition."""

    first: int
    end: int
    rendition: Rendition


def course(output: Output, after: int, end: int | None = None) -> Iterator[Switch | Span]:
    """Where the changes after a time come from, in the order of their times.

    Updates of an old rendition from a handover on are never forwarded: the new one contains their messages.

    Args:
        output: The output, as it was at any moment.
        after: The changes continue the state at this time.
        end: The changes end before this time, and before the frontier in any case.
    """
    previous: Rendition | None = None
    for begin, until, number in output.intervals:
        until = until if end is None else min(until, end)
        rendition, first = output.rendition(number), max(begin, after + 1)
        if first < until:
            if previous is not None and first == begin:
                yield Switch(begin, previous, rendition)
                first = begin + 1
            if first < until:
                yield Span(first, until, rendition)
        previous = rendition


def changes(output: Output, rows: CollectionRows, after: int) -> Iterator[RowUpdate]:
    """The updates after a time and before the frontier, in the order of their times.

    Added to the state at ``after`` they give the state at every later time. This one keeps whole states in
    memory: it says what readers of tables have to give.
    """
    for step in course(output, after):
        if isinstance(step, Switch):
            before, at = rows.state(step.before, step.h - 1), rows.state(step.after, step.h)
            yield from difference(step.h, before, at)
        else:
            yield from rows.updates(step.rendition, step.first, step.end)


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
