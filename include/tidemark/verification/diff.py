"""Two keyspaces of one pipeline compared, and whether readers may go from one to the other. Pure.

Nothing is repaired in place: a keyspace is rebuilt next to the old one, compared with it, and then readers
are switched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.journal.difference import Difference
from tidemark.log.model.binding import TopicPartition
from tidemark.verification.tally import Counts


@dataclass(frozen=True, slots=True)
class Side:
    """One of the keyspaces, and its writer."""

    keyspace: str
    writer: str
    position: int
    gate: str | None
    """Why it is closed."""
    pointers: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Diff:
    """What is different between a keyspace and the one that shall take its place."""

    pipeline: str
    old: Side
    new: Side
    topics: Mapping[str, Counts]
    differences: tuple[Difference, ...]
    """The first ones."""
    total: int
    """How many there are, told or not."""
    moved: tuple[str, ...] = ()
    """Writers that were at work meanwhile."""
    seconds: float = 0.0

    @property
    def is_same(self) -> bool:
        """Whether a reader cannot tell them apart, pointers included."""
        return not self.total and self.old.pointers == self.new.pointers

    def say(self, difference: Difference) -> str:
        """A difference as a sentence that takes no side."""
        return f"{difference.where}: {difference.between(self.old.keyspace, self.new.keyspace)}"

    @property
    def is_safe(self) -> bool:
        """Whether readers may be switched."""
        return not self.obstacles

    @property
    def obstacles(self) -> tuple[str, ...]:
        """What stands in the way of a switch."""
        return tuple(self._obstacles())

    def _obstacles(self) -> Iterator[str]:
        if different := sum(counts.different for counts in self.topics.values()):
            yield f"{different:,} entit{'y is' if different == 1 else 'ies are'} different"
        for (topic, partition), offset in sorted(self.old.pointers.items()):
            has = self.new.pointers.get((topic, partition))
            if has is None or has < offset:
                said = "has no pointer" if has is None else f"is at offset {has}"
                yield f"{topic}/{partition}: {self.new.keyspace} {said}, {self.old.keyspace} at {offset}"
        if self.old.position != self.new.position:
            yield (
                f"the writers are not at the same id: {self.old.writer} at {self.old.position:,}, "
                f"{self.new.writer} at {self.new.position:,}"
            )
        for side in (self.old, self.new):
            if side.gate is not None:
                yield f"the gate of {side.writer} is closed: {side.gate}"
        for writer in self.moved:
            yield f"{writer} was at work meanwhile: compare again when it rests"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "pipeline": self.pipeline,
            "old": _side(self.old),
            "new": _side(self.new),
            "same": self.is_same,
            "safe": self.is_safe,
            "obstacles": list(self.obstacles),
            "topics": {topic: asdict(counts) for topic, counts in self.topics.items()},
            "total": self.total,
            "differences": [{**one.to_dict(), "said": self.say(one)} for one in self.differences],
            "pointers": list(pointer_rows(self)),
            "seconds": round(self.seconds, 3),
        }


def pointer_rows(diff: Diff) -> Iterator[dict[str, Any]]:
    """The pointers of both, partition by partition."""
    for topic, partition in sorted({*diff.old.pointers, *diff.new.pointers}):
        place = (topic, partition)
        old, new = diff.old.pointers.get(place), diff.new.pointers.get(place)
        yield {"topic": topic, "partition": partition, "old": old, "new": new}


def _side(side: Side) -> dict[str, Any]:
    return {
        "keyspace": side.keyspace,
        "writer": side.writer,
        "position": side.position,
        "gate": "open" if side.gate is None else "stopped",
    }
