"""The collection of objects, as an agent's streams read it. Everything blocks.

The protocol is what the streams need; ``collection_store.CollectionStore`` is its implementation.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from tidemark.errors import TidemarkError
from tidemark.oplog.model.images import ObjectRow

ObjectName = tuple[str, str]
"""Type and id."""


class TimeForgotten(TidemarkError):
    """The collection does not remember a time any more."""


class ObjectStore(Protocol):
    """One collection with envelope ``oplog``."""

    def newest(self) -> int:
        """The newest readable time."""

    def holding(self, t: int) -> AbstractContextManager[None]:
        """Keep the state as of a time, and everything after it, readable until the block ends.

        Raises ``TimeForgotten`` where it is not readable any more.
        """

    def rows(self, t: int, token: int) -> Iterator[Sequence[ObjectRow]]:
        """The newest row of every object as of a time, deletes included, by token from one on, in pages."""

    def versions(
        self, objects: Sequence[ObjectName], before: int, until: int
    ) -> Mapping[ObjectName, Sequence[ObjectRow]]:
        """Rows of these objects, the newest first: those after ``before`` up to ``until``, and the newest one
        up to ``before``."""

    def check(self) -> None:
        """Ask the collection. Raises ``TidemarkError`` where it does not answer."""
