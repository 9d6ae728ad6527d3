"""Filters of streams: by type and by parents."""

from collections.abc import Collection
from dataclasses import dataclass

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OperationFilter:
    """Which operations a stream has. Both sets: an operation needs one of each.

    Attributes:
        types: The types; empty for all.
        parents: The parents of which an operation needs one; empty for all. Operations without parents pass.
    """

    types: frozenset[str] = NOTHING
    parents: frozenset[str] = NOTHING

    @classmethod
    def of(cls, types: Collection[str] = (), parents: Collection[str] = ()) -> "OperationFilter":
        """The filter of what a request names; types are lower-cased, as those of operations are."""
        return cls(frozenset(each.lower() for each in types), frozenset(parents))

    def admits(self, type_: str, parents: Collection[str]) -> bool:
        """Whether an operation on an object of this type, with these parents, is in the stream."""
        if self.types and type_ not in self.types:
            return False
        return not self.parents or not parents or not self.parents.isdisjoint(parents)
