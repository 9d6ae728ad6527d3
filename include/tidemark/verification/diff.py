"""The comparison of two keyspaces of one pipeline, and whether readers can be switched from one to the other.

A damaged keyspace is not repaired in place: it is rebuilt under a new name, compared with the old one, and
then readers are switched. Pure: nothing is read here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.journal.difference import Difference
from tidemark.log.model.binding import TopicPartition
from tidemark.verification.tally import Counts


@dataclass(frozen=True, slots=True)
class Side:
    """One of the keyspaces, with its writer; ``gate`` is the reason why the writer's gate is closed."""

    keyspace: str
    writer: str
    position: int
    gate: str | None
    pointers: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Diff:
    """The differences between a keyspace and its replacement.

    Attributes:
        differences: The first ones; ``total`` counts all.
        moved: The writers that delivered something while the keyspaces were read.
    """

    pipeline: str
    old: Side
    new: Side
    topics: Mapping[str, Counts]
    differences: tuple[Difference, ...]
    total: int
    moved: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def is_same(self) -> bool:
        """Whether readers get the same from both, pointers included."""
        return not self.total and self.old.pointers == self.new.pointers

    def say(self, difference: Difference) -> str:
        """A difference as a sentence that names both keyspaces and calls neither wrong."""
        return f"{difference.where}: {difference.between(self.old.keyspace, self.new.keyspace)}"

    @property
    def is_safe(self) -> bool:
        """Whether readers can be switched to the new keyspace."""
        return not self.obstacles

    @property
    def obstacles(self) -> tuple[str, ...]:
        """The reasons why readers should not be switched, one sentence each."""
        return tuple(self._obstacles())

    def _obstacles(self) -> Iterator[str]:
        if different := sum(counts.different for counts in self.topics.values()):
            yield f"{different:,} entit{'y is' if different == 1 else 'ies are'} different"
        for (topic, partition), offset in sorted(self.old.pointers.items()):
            new_offset = self.new.pointers.get((topic, partition))
            if new_offset is None or new_offset < offset:
                state = "has no pointer" if new_offset is None else f"is at offset {new_offset}"
                yield f"{topic}/{partition}: {self.new.keyspace} {state}, {self.old.keyspace} at {offset}"
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
        """The document that ``--json`` prints."""
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
    """The pointers of both keyspaces, one row per partition."""
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
