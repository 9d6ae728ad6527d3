"""Which entities are verified: all, those that an interval touched, a sample of either, or a given few.

A choice is a question about one entity, with the same answer wherever and whenever it is asked: a sample is
drawn by hashes of keys, never by chance. Choices travel to tasks.
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
    """What a person, or a task, wants verified."""

    entities: tuple[Entity, ...] = ()
    """These and no others."""
    topics: tuple[str, ...] = ()
    """Only these; all that the writer takes when none is named."""
    from_t: int | None = None
    to_t: int | None = None
    """Entities with a message in a binding of this interval (µs, both ends included)."""
    sample: int | None = None
    """At most so many of those."""
    seed: int = 0
    """Another one draws another sample."""

    @property
    def is_interval(self) -> bool:
        """Whether bindings decide."""
        return self.from_t is not None or self.to_t is not None

    @property
    def is_everything(self) -> bool:
        """Whether all entities of the tables are looked at, too."""
        return not self.entities and not self.is_interval and self.sample is None

    def has_time(self, t: int) -> bool:
        """Whether a binding is in the interval."""
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
        """For each of the keys, whether it is."""


@dataclass(frozen=True, slots=True)
class Everything:
    """All entities."""

    def __call__(self, topic: str, keys: Sequence[str]) -> Sequence[bool]:
        """See ``Choice``."""
        return [True] * len(keys)


@dataclass(frozen=True, slots=True)
class Listed:
    """Entities that are known by name."""

    entities: frozenset[Entity]

    def __call__(self, topic: str, keys: Sequence[str]) -> Sequence[bool]:
        """See ``Choice``."""
        return [(topic, key) in self.entities for key in keys]


@dataclass(frozen=True)
class Hashed:
    """Very many entities, known by their hashes alone. One in a thousand million too many does no harm."""

    hashes: Hashes
    """In order, each once."""
    seed: int = 0

    @classmethod
    def of(cls, hashes: Iterable[Hashes], seed: int) -> "Hashed":
        """The entities with these hashes."""
        return cls(np.unique(np.concatenate([np.empty(0, np.uint32), *hashes])), seed)

    def sample(self, count: int) -> "Hashed":
        """So many of them: those with the smallest hashes, which says nothing about them."""
        return Hashed(self.hashes[:count], self.seed)

    def __call__(self, topic: str, keys: Sequence[str]) -> Sequence[bool]:
        """See ``Choice``."""
        found: list[bool] = np.isin(hashes_of(topic, keys, self.seed), self.hashes).tolist()
        return found


def hashes_of(topic: str, keys: Sequence[str], seed: int = 0) -> Hashes:
    """A hash of 32 bits for each of these entities."""
    start = crc32(f"{seed}/{topic}".encode())
    return np.fromiter((crc32(key.encode("utf-8", "replace"), start) for key in keys), np.uint32, len(keys))
