"""The topic's operations in the commit log, as an agent's streams read them. Everything blocks.

The protocol is what the streams need; ``commit_log.LoggedBindings`` is its implementation.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from tidemark.oplog.model.judged_operations import LookBack, LookedBack, TopicRecord
from tidemark.oplog.model.resume_plan import LoggedOffsets


@dataclass(frozen=True, slots=True)
class MissedTimes:
    """Between which times the bindings lie that a vector lies within.

    Attributes:
        before: The last time whose state a client with the vector has whole.
        until: The last time of which it may have a part.
    """

    before: int
    until: int


class LoggedTopic(Protocol):
    """The log of one topic under one topic id; bindings of an earlier topic of its name do not count."""

    def offsets(self, starts: Mapping[int, int]) -> Mapping[int, LoggedOffsets]:
        """What the log has of these partitions without a gap from an offset on, as far as it has it.

        A partition is left out where the log does not reach back to its offset without a gap: a loss was
        accepted, or the log was compacted.
        """

    def records(
        self, starts: Mapping[int, int]
    ) -> AbstractContextManager[tuple[Iterator[TopicRecord], Mapping[int, int]]]:
        """The records from these offsets on, and where they end; nothing removes them inside the block."""

    def look_back(self, wanted: LookBack) -> LookedBack:
        """Earlier records; see ``LookingBack``. Raises ``OffsetGone``."""

    def ends_at(self, t: int) -> Sequence[int | None]:
        """The next offset of every partition after all bindings up to a time; None for one never bound."""

    def missed(self, beyond: Sequence[int | None]) -> MissedTimes:
        """The times that offsets lie within; those of partitions without one do not count."""
