"""What a stream has: what its client wants, within what its token allows."""

from collections.abc import Collection
from dataclasses import dataclass

from tidemark.operations.filters import OperationFilter

EVERYTHING = OperationFilter()


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """A filter and limits.

    Operations without parents pass a filter by parents, so that a delete that names none reaches its client.
    They do not pass limits by parents: what a token allows never widens.

    Attributes:
        wanted: What the client wants.
        allowed: What its token allows.
    """

    wanted: OperationFilter = EVERYTHING
    allowed: OperationFilter = EVERYTHING

    def admits(self, type_: str, parents: Collection[str]) -> bool:
        """Whether the stream has an operation on an object of this type, with these parents."""
        allowed = self.allowed
        if allowed.parents and not parents:
            return False
        return self.wanted.admits(type_, parents) and allowed.admits(type_, parents)

    @property
    def has_parents(self) -> bool:
        """Whether an object can leave the stream by a change of its parents."""
        return bool(self.wanted.parents or self.allowed.parents)

    @property
    def sets(self) -> tuple[list[str], ...]:
        """What it consists of, in one form for all equal filters."""
        return tuple(sorted(each) for one in (self.wanted, self.allowed) for each in (one.types, one.parents))
