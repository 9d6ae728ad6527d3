"""Removal of versions that are older than a writer keeps them (``keep``), in every rendition.

The order of the steps is what makes it safe. First ``since`` is raised as far as readers allow: what has
expired goes, what a reader holds stays, and readers that come later are refused older times. Only then
versions are deleted that no time from ``since`` on sees. A rendition that has not finished ``since`` is left
alone: of an unfinished binding a message may still be taken back, and the version before it is seen again.
No lease is needed: deliveries go on, and two runs at once delete the same. Every step can be repeated.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from tidemark.faults import FaultPoint, reach
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import GONE, Rendition, RenditionState
from tidemark.outputs.model.retention import forget_older, mark_trimmed
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress
from tidemark.outputs.state.reader_store import ReaderStore

_LEFT_ALONE = GONE | {RenditionState.ABANDONED}


class VersionRemoval(Protocol):
    """Removes versions of a rendition. Both methods can be repeated, and two processes may call them at
    once. They never touch what a time from ``since`` on sees."""

    def drop_versions(self, rendition: Rendition, since: int) -> int:
        """Delete the versions of each key before the newest one at ``since``; returns the number of keys
        that had some."""

    def drop_changes(self, rendition: Rendition, since: int) -> int:
        """Delete what is stored about the changes at times before ``since``, from ``rendition.trimmed`` on;
        returns the number of times."""


class TrimmedRendition(NamedTuple):
    """What was removed of one rendition: the keys that had older versions, and the times without changes."""

    number: int
    keys: int
    times: int


class Trimmed(NamedTuple):
    """What a removal came to: the first readable time, and what was removed of each rendition."""

    since: int
    renditions: tuple[TrimmedRendition, ...]


def trim(
    store: OutputStore, readers: ReaderStore, progress: Progress, cut: int, removal: VersionRemoval
) -> Trimmed:
    """Remove the versions that no time from ``cut`` on sees, as far as readers allow."""
    frontier = store.require().frontier
    since = readers.change(lambda known, now: forget_older(known, frontier, cut, now)).since
    reach(FaultPoint.TRIM_SINCE_RAISED)
    done = []
    for one in trimmable(store.require(), progress, min(since, cut)):
        done.append(_trim_one(store, one, min(since, cut), removal))
    return Trimmed(since, tuple(done))


def trimmable(output: Output, progress: Progress, since: int) -> Iterator[Rendition]:
    """The renditions that may have versions that no time from ``since`` on sees. Those without a binding
    since the last removal have none, and are not read."""
    newest = next(progress.bindings.before(since + 1), None)
    for one in output.renditions:
        if newest is None or newest.t <= one.trimmed or one.state in _LEFT_ALONE:
            continue
        if progress.upper(one.number) > since:
            yield one


def _trim_one(
    store: OutputStore, rendition: Rendition, since: int, removal: VersionRemoval
) -> TrimmedRendition:
    keys = removal.drop_versions(rendition, since)
    reach(FaultPoint.TRIM_VERSIONS_DROPPED)
    times = removal.drop_changes(rendition, since)
    reach(FaultPoint.TRIM_CHANGES_DROPPED)
    store.change(lambda output: mark_trimmed(output, rendition.number, since))
    reach(FaultPoint.TRIM_RECORDED)
    return TrimmedRendition(rendition.number, keys, times)
