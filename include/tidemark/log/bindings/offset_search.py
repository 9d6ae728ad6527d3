"""The search for the last offset before a binding in each of its partitions: what is left to find, and where.

It decides only; the door to bindings reads. Each partition that is left has a time: it was not bound between
that time and the binding. Without such knowledge that is the time of the binding itself.
"""

from collections.abc import Callable

from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition


class OffsetSearch:
    """What is found so far.

    ``is_same`` tells whether a topic of an older binding is the same topic as in ``binding``. Where it is
    not, no older binding has the same topic either, because a recreated topic never comes back.
    """

    def __init__(self, binding: Binding, is_same: Callable[[str, Binding], bool]) -> None:
        self.found: dict[TopicPartition, int] = {}
        self._is_same = is_same
        times = {place: binding.last_bound.get(place, binding.t) for place in binding.shifts}
        self._left = {place: t for place, t in times.items() if t != NOTHING_YET and binding.base}

    @property
    def times(self) -> list[int]:
        """The times of the partitions that are left, newest first."""
        return sorted(set(self._left.values()), reverse=True)

    def has_left(self, t: int) -> bool:
        """Whether a partition with this time is left."""
        return t in self._left.values()

    def note(self, older: Binding, t: int) -> None:
        """Take what an older binding has of the partitions with times up to ``t``.

        Every binding from ``t`` back to this one must have been noted before.
        """
        for place, offset in older.offsets_at(older.end).items():
            if self._left.get(place, t + 1) <= t:
                del self._left[place]
                if self._is_same(place[0], older):
                    self.found[place] = offset

    def end(self, t: int) -> None:
        """Every binding from ``t`` back was noted: what is left of the partitions with times up to ``t`` is
        new."""
        self._left = {place: time for place, time in self._left.items() if time > t}
