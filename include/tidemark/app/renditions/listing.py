"""The renditions of writers, as ``tidemark renditions`` lists them. Read-only."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.app.renditions.opened import WriterRenditions
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import GONE, Rendition, RenditionState, Signature

_LEFT = frozenset({*GONE, RenditionState.ABANDONED})


@dataclass(frozen=True, slots=True)
class ListedRendition:
    """One rendition.

    Attributes:
        rendition: The rendition.
        is_active: Whether readers use it.
        position: The position of its consumer; −1 where it never ran.
        upper: The first time (µs) that it has not finished; None where it gets nothing any more.
        gate: Why its gate is closed; None where it is open.
        used: The intervals in which readers use it, as pairs of times (µs).
        changes: What differs from the file and the code on disk, as sentences.
    """

    rendition: Rendition
    is_active: bool
    position: int
    upper: int | None
    gate: str | None
    used: tuple[tuple[int, int], ...]
    changes: tuple[str, ...] = ()

    @property
    def newest(self) -> Signature:
        """Who did the last thing to it that has an author, and why."""
        one = self.rendition
        return one.retired or one.abandoned or one.signed

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        one = self.rendition
        row = one.to_row()
        kept = ("number", "state", "place", "since", "signed", "evidence", "taint", "abandoned", "retired")
        return {
            **{key: row[key] for key in kept},
            "settings": dict(one.settings),
            "active": self.is_active,
            "position": self.position,
            "upper": self.upper,
            "gate": self.gate,
            "used": [list(interval) for interval in self.used],
            "changes": list(self.changes),
        }


@dataclass(frozen=True, slots=True)
class ListedOutput:
    """The renditions of one writer.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        since: The first time that readers may ask for; None before the first delivery.
        frontier: Readers may ask for times before it; None before the first delivery.
        renditions: In the order of their numbers.
        handovers: The handovers, oldest first, as documents.
    """

    pipeline: str
    writer: str
    since: int | None = None
    frontier: int | None = None
    renditions: tuple[ListedRendition, ...] = ()
    handovers: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "since": self.since,
            "frontier": self.frontier,
            "renditions": [one.to_dict() for one in self.renditions],
            "handovers": [dict(one) for one in self.handovers],
        }


def list_renditions(of: WriterRenditions) -> ListedOutput:
    """The renditions of one writer as they are now; none before its first delivery."""
    output = of.store.load()
    if output is None:
        return ListedOutput(of.pipeline, of.writer)
    since = max(output.since, of.readers.load().since)
    found = tuple(_listed(of, output, one) for one in output.renditions)
    handovers = tuple(
        {"h": one.h, "rendition": one.rendition, "forced": one.is_forced, **asdict(one.signed)}
        for one in output.handovers
    )
    return ListedOutput(of.pipeline, of.writer, since, output.frontier, found, handovers)


def _listed(of: WriterRenditions, output: Output, rendition: Rendition) -> ListedRendition:
    state = of.opened.positions.load(of.consumer(rendition.number))
    used = (one for one in output.intervals if one.rendition == rendition.number)
    is_left = rendition.state in _LEFT
    gate = state.gate if state and not is_left else None
    return ListedRendition(
        rendition,
        rendition.number == output.active.number,
        state.position if state else -1,
        None if is_left else of.progress.upper(rendition.number),
        f"stopped at {gate.where}: {gate.reason}" if gate else None,
        tuple((one.begin, one.end) for one in used),
        () if is_left else tuple(map(str, of.changes(rendition))),
    )
