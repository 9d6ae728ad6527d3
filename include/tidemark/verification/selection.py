"""Which entities are verified: all, those with messages of an interval, a sample of either, or a given list.

A choice is deterministic: samples are drawn by hashes of keys, so every task decides the same about an
entity. Choices are picklable, because they are sent to tasks. Nothing is read here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tidemark.log.model.manifest import LogFile

Hashes = NDArray[np.uint32]


class Entity(NamedTuple):
    """A key of a topic."""

    topic: str
    key: str


@dataclass(frozen=True, slots=True)
class EntitySelection:
    """What an operator, or a task, wants verified.

    Attributes:
        entities: Only these; empty for all.
        topics: Only entities of these topics; empty for all topics of the writer.
        from_t: Only entities with a message in a binding from this time on (µs, included).
        to_t: Only entities with a message in a binding up to this time (µs, included).
        sample: At most so many of the selected entities.
        seed: The seed of the sample.
    """

    entities: tuple[Entity, ...] = ()
    topics: tuple[str, ...] = ()
    from_t: int | None = None
    to_t: int | None = None
    sample: int | None = None
    seed: int = 0

    @property
    def is_interval(self) -> bool:
        """Whether entities are selected by the bindings of their messages."""
        return self.from_t is not None or self.to_t is not None

    @property
    def is_everything(self) -> bool:
        """Whether every entity is verified, including those that only the tables hold."""
        return not self.entities and not self.is_interval and self.sample is None

    def has_time(self, t: int) -> bool:
        """Whether a binding with this time is in the interval."""
        return (self.from_t is None or t >= self.from_t) and (self.to_t is None or t <= self.to_t)

    def may_have(self, file: LogFile) -> bool:
        """Whether a file can hold messages of a binding in the interval."""
        begins_late = self.to_t is not None and file.first_t > self.to_t
        ends_early = self.from_t is not None and file.t < self.from_t
        return not begins_late and not ends_early


EVERYTHING = EntitySelection()


class Choice(Protocol):
    """Which entities of a topic are chosen."""

    def __call__(self, topic: str, keys: Sequence[str]) -> Sequence[bool]:
        """Whether the entity is chosen, for each key."""


@dataclass(frozen=True, slots=True)
class Everything:
    """All entities."""

    def __call__(self, topic: str, keys: Sequence[str]) -> Sequence[bool]:
        """See ``Choice``."""
        return [True] * len(keys)


@dataclass(frozen=True, slots=True)
class Listed:
    """The given entities."""

    entities: frozenset[Entity]

    def __call__(self, topic: str, keys: Sequence[str]) -> Sequence[bool]:
        """See ``Choice``."""
        return [(topic, key) in self.entities for key in keys]


@dataclass(frozen=True)
class Hashed:
    """Entities with the given hashes, sorted and unique.

    Choosing an entity too many because of a collision is harmless: it is verified as well.
    """

    hashes: Hashes
    seed: int = 0

    @classmethod
    def of(cls, hashes: Iterable[Hashes], seed: int) -> "Hashed":
        """The entities with these hashes."""
        return cls(np.unique(np.concatenate([np.empty(0, np.uint32), *hashes])), seed)

    def sample(self, count: int) -> "Hashed":
        """At most so many of them: those with the smallest hashes, which is as good as random."""
        return Hashed(self.hashes[:count], self.seed)

    def __call__(self, topic: str, keys: Sequence[str]) -> Sequence[bool]:
        """See ``Choice``."""
        found: list[bool] = np.isin(hashes_of(topic, keys, self.seed), self.hashes).tolist()
        return found


def hashes_of(topic: str, keys: Sequence[str], seed: int = 0) -> Hashes:
    """A 32-bit hash of each entity."""
    start = crc32(f"{seed}/{topic}".encode())
    return np.fromiter((crc32(key.encode("utf-8", "replace"), start) for key in keys), np.uint32, len(keys))
