"""What the bindings of a log have bound, summed up by partition: first and last offsets, first and last ids.

A log has a binding for every second of its life, so they are read as a stream and never kept. A process that
asks again and again, as a follow does, reads each binding once: what was summed up is kept with the
``LogControl`` it was read through, and continued from there. Bindings never change once they are published.
Read-only.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TypeVar
from weakref import WeakKeyDictionary

from tidemark.delivery.published_log import PublishedLog
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition
from tidemark.log.model.recreated_topics import Recreations
from tidemark.log.state.control import LogControl

Incarnation = tuple[TopicPartition, int]
"""A partition and the number of its topic among those that had the same name."""


Value = TypeVar("Value")


@dataclass(frozen=True)
class Bound:
    """The sum of the oldest bindings.

    Attributes:
        recreations: By which the incarnations were told apart.
        last: The last binding of the sum; None for none.
        starts: The first offset that was bound.
        offsets: The last offset that was bound.
        ids: The first and the last id.
    """

    recreations: Recreations
    last: Binding | None = None
    starts: dict[Incarnation, int] = field(default_factory=dict)
    offsets: dict[Incarnation, int] = field(default_factory=dict)
    ids: dict[Incarnation, tuple[int, int]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The last id of the sum."""
        return self.last.end if self.last else NOTHING_YET

    def with_bindings(self, bindings: Iterator[Binding]) -> "Bound":
        """The sum with the following bindings; this one is unchanged."""
        last, starts, offsets, ids = self.last, dict(self.starts), dict(self.offsets), dict(self.ids)
        for last in bindings:
            for s in last.slices:
                place = (s.topic, s.partition)
                of = (place, self.recreations.number_in(s.topic, last))
                first_id, last_id = last.owned[place]
                starts.setdefault(of, s.lower)
                offsets[of] = s.upper - 1
                ids[of] = (ids[of][0] if of in ids else first_id, last_id)
        return replace(self, last=last, starts=starts, offsets=offsets, ids=ids)

    def offsets_at(self, position: int, following: Binding | None) -> dict[Incarnation, int]:
        """The last offsets at a position that is in the binding after the sum, or before it."""
        if following is None or following.base > position:
            return self.offsets
        inside = following.offsets_at(position)
        number = self.recreations.number_in
        return self.offsets | {(at, number(at[0], following)): offset for at, offset in inside.items()}


_KNOWN: "WeakKeyDictionary[LogControl, dict[str, Bound]]" = WeakKeyDictionary()


def published_after(log: PublishedLog, position: int) -> Iterator[Binding]:
    """The published bindings that end after a position, oldest first, read while they are consumed."""
    return takewhile(lambda one: one.t <= log.manifest.t, log.bindings.after(position))


def bound_up_to(log: PublishedLog, recreations: Recreations, position: int, purpose: str) -> Bound:
    """The sum of the published bindings that end at or below a position.

    ``purpose`` names callers whose positions advance together: each continues its own sum.
    """
    sums = _KNOWN.setdefault(log.control, {})
    known = sums.get(purpose)
    if known is None or known.recreations != recreations or known.end > position:
        known = Bound(recreations)
    rest = published_after(log, known.end - 1 if known.last else NOTHING_YET)
    if known.last is not None and next(rest, None) != known.last:
        # The pipeline was forgotten, and another one has its name.
        known, rest = Bound(recreations), published_after(log, NOTHING_YET)
    found = sums[purpose] = known.with_bindings(takewhile(lambda one: one.end <= position, rest))
    return found


def of_numbers(
    found: Mapping[Incarnation, Value], number: Callable[[str], int]
) -> dict[TopicPartition, Value]:
    """Those of the incarnations with the number that a topic's name stands for."""
    return {place: value for (place, one), value in found.items() if one == number(place[0])}
