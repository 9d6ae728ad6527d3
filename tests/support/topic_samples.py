"""A topic in memory, and a writer to it: what the kafka writer is to a delivery, without Kafka."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from tidemark.delivery.writer import (
    Check,
    Part,
    TargetIdentity,
    TargetMissing,
    TargetReplaced,
    Writer,
    Writing,
    Written,
)
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile

_numbers = count(1)


@dataclass
class Topic:
    """What a broker has under one name; deleted and made again it has another id and nothing in it."""

    parts: int = 2
    id: str = "first"
    ids: dict[int, list[int]] = field(default_factory=dict)
    is_there: bool = True

    def make_again(self, parts: int | None = None) -> None:
        self.id, self.ids, self.is_there = f"made-{next(_numbers)}", {}, True
        self.parts = parts or self.parts

    @property
    def everything(self) -> list[int]:
        return sorted(id_ for ids in self.ids.values() for id_ in ids)


@dataclass(frozen=True)
class TopicWriter(Writer):
    """Sends ids to the part that they say, ascending; ids at or below the last one are skipped."""

    topic: Topic
    name: str = "out"
    dropped: frozenset[int] = frozenset()
    """What a transform drops."""
    bound: TargetIdentity | None = None
    before_write: Callable[[], None] = lambda: None

    @property
    def shape(self) -> Mapping[str, Any]:
        return {"kind": "topic", "partitions": self._parts}

    @property
    def _parts(self) -> int:
        return int(self.bound.shape["partitions"]) if self.bound else self.topic.parts

    def identify(self) -> TargetIdentity:
        if not self.topic.is_there:
            raise TargetMissing("there is no topic copy")
        return TargetIdentity(self.topic.id, "topic copy", {"partitions": self.topic.parts})

    def bound_to(self, identity: TargetIdentity) -> "TopicWriter":
        return replace(self, bound=identity)

    def reached(self) -> Mapping[int, int]:
        return {part: max(self.topic.ids.get(part, ()), default=-1) for part in range(self._parts)}

    def placing(self) -> Callable[[Mapping[str, Any]], int | None]:
        return lambda message: None if message["id"] in self.dropped else message["id"] % self._parts

    def prepare(self) -> None:
        self.identify()

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        return [Part(binding, tuple(files), number) for number in range(self._parts)]

    def write(self, part: Part, writing: Writing) -> Written:
        self.before_write()
        written = ignored = 0
        last = dict(self.reached())
        for batch in writing.batches:
            for message in batch.to_pylist():
                place = message["id"] % self._parts
                if part.number not in (None, place):
                    continue
                if message["id"] in self.dropped or message["id"] <= last[place]:
                    ignored += 1
                else:
                    self.topic.ids.setdefault(place, []).append(message["id"])
                    written += 1
        return Written(written, ignored=ignored)

    def finish(self, part: Part, writing: Writing) -> None:
        pass

    def settle(self, binding: Binding, position: int, lease: Check) -> None:
        if self.bound and self.bound.id != self.topic.id:
            raise TargetReplaced(
                "orders", self.name, "topic copy", self.bound.id, self.topic.id, "it was made again"
            )

    def is_reachable(self) -> None:
        self.identify()
