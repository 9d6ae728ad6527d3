"""How much a new rendition has to deliver, and how long that may take.

The rate is that of the deliveries to the active rendition that the offset log still has. It is an estimate: a
build reads larger bindings at once, and its target may be slower or faster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

from tidemark.clock import SECOND
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.log.model.binding import NOTHING_YET


@dataclass(frozen=True, slots=True)
class BuildSize:
    """What a rendition has to get.

    Attributes:
        messages: Messages of the log beyond its position, at most.
        bindings: Bindings beyond its position.
        rate: Ids a second of earlier deliveries; None where none was measured.
    """

    messages: int
    bindings: int
    rate: float | None

    @property
    def seconds(self) -> float | None:
        """How long it may take; None where no rate is known."""
        return self.messages / self.rate if self.rate else None

    def __str__(self) -> str:
        amount = f"{self.messages:,} messages in {self.bindings:,} bindings"
        if self.seconds is None or self.rate is None:
            return f"{amount}; how long that takes is not known: no delivery was measured yet"
        took = timedelta(seconds=max(1, round(self.seconds)))
        return f"{amount}; about {took}, at the {self.rate:,.0f} ids a second of earlier deliveries"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {"messages": self.messages, "bindings": self.bindings, "seconds": self.seconds}


def size_of(log: PublishedLog, position: int, history: Sequence[OffsetEntry]) -> BuildSize:
    """What a consumer at a position still has to get of a log.

    ``history`` are entries of the offset log of another consumer of the same log, oldest first.
    """
    bindings = sum(1 for _ in log.waiting(position))
    share = (log.end - position) / (log.end + 1) if log.end > NOTHING_YET else 0.0
    return BuildSize(round(log.manifest.count * share), bindings, rate_of(history))


def rate_of(history: Sequence[OffsetEntry]) -> float | None:
    """Ids a second, over pairs of commits of one run; None where there is no such pair."""
    ids = took = 0
    for before, after in pairwise(history):
        is_pair = before.kind is after.kind is OffsetEntryKind.COMMIT and before.by == after.by
        if is_pair and after.at > before.at:
            ids += after.position - before.position
            took += after.at - before.at
    return ids * SECOND / took if took and ids > 0 else None
