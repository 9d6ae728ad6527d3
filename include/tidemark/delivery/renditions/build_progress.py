"""How far a rendition is that is being built, and when it will have caught up at the speed of late.

Read from its consumer's position and offset log, so that any process can tell. An estimate supposes that the
build goes on as it did in its newest commits; nothing is estimated from fewer than two.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import NOTHING_YET

NEWEST = 50
"""How many commits the speed is measured over."""


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """The progress of a build.

    Attributes:
        bindings_left: How many bindings it has not finished.
        ids_done: How many ids of the log it has finished.
        ids_left: How many it has not; at most so many messages are left.
        estimated_end: When it will have caught up, in µs; None where that cannot be told.
    """

    bindings_left: int
    ids_done: int
    ids_left: int
    estimated_end: int | None


def read_build_progress(positions: Positions, name: str, bindings: Bindings, end: int) -> BuildProgress:
    """The progress of the consumer ``name`` to the ``end`` of the log."""
    state = positions.load(name)
    position = state.position if state else NOTHING_YET
    left = max(end - position, 0)
    waiting = sum(1 for one in bindings.after(position) if one.base <= end) if left else 0
    entries = positions.history(name, NEWEST) if state and left else []
    return BuildProgress(waiting, position + 1, left, estimated_end(entries, left))


def progress_of(positions: Positions, name: str, log: PublishedLog) -> BuildProgress:
    """The progress of a consumer to the end of the published log."""
    return read_build_progress(positions, name, log.bindings, log.end)


def estimated_end(entries: Sequence[OffsetEntry], left: int) -> int | None:
    """When so many further ids are finished, by the commits of an offset log, oldest first."""
    commits = [one for one in entries if one.kind is OffsetEntryKind.COMMIT]
    if len(commits) < 2 or not left:
        return None
    first, last = commits[0], commits[-1]
    took, ids = last.at - first.at, last.position - first.position
    return last.at + left * took // ids if took > 0 and ids > 0 else None
