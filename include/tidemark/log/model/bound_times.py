"""When each partition was last bound: what the head of the bindings knows, and what a new binding keeps.

A search for the last offsets before a binding then reads the bindings that have them, instead of all since.
Processes of earlier versions neither keep nor write these times, so they may be incomplete, but never wrong:
they never say that a partition was not bound where it was. Nothing here does I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tidemark.log.model.binding import (
    NOTHING_YET,
    Binding,
    Slice,
    TopicPartition,
    times_from_rows,
    times_to_rows,
)


@dataclass(frozen=True, slots=True)
class BoundTimes:
    """The times of the bindings that last bound each partition.

    Accepted losses do not change them: they move offsets without binding any. Nor does a recreated topic: the
    names of its partitions were last bound by the old one.

    Attributes:
        times: The time of its last binding, by partition; only of bindings after ``since``.
        since: The bindings up to this time are not known here; −1: all are.
    """

    times: Mapping[TopicPartition, int] = field(default_factory=dict)
    since: int = NOTHING_YET

    def before(self, slices: Iterable[Slice], newest: int | None) -> dict[TopicPartition, int]:
        """``Binding.last_bound`` of the binding that follows the one at ``newest``."""
        if newest is None:
            return {}
        found = {(s.topic, s.partition): self.times.get((s.topic, s.partition), self.since) for s in slices}
        return {place: t for place, t in found.items() if t != newest}

    def after(self, binding: Binding) -> Self:
        """The times after another binding."""
        bound = {(s.topic, s.partition): binding.t for s in binding.slices}
        return type(self)({**self.times, **bound}, self.since)

    def to_row(self) -> dict[str, Any]:
        """The entry of the head."""
        return {"since": self.since, "times": times_to_rows(self.times)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any] | None) -> Self | None:
        """From the head's entry; heads of earlier versions have none."""
        return None if row is None else cls(times_from_rows(row["times"]), row["since"])
