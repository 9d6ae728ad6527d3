"""Trims a collection: removes the versions that are older than its ``keep``, as far as its readers allow.

A plan counts keys, so it reads at most two rows of each key. Collections without ``keep`` are refused: all of
their versions stay.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from tidemark.app.renditions.opened import WriterRenditions
from tidemark.clock import SECOND
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.outputs.model.rendition import Rendition
from tidemark.outputs.model.retention import forgettable
from tidemark.outputs.state.trim import Trimmed, trim, trimmable
from tidemark.pipeline.quantities import duration_text
from tidemark.writers.collection.kind import CollectionDeclaration
from tidemark.writers.collection.target import CollectionTarget
from tidemark.writers.collection.writer import CollectionWriter
from tidemark.writers.renditions import build_rendition


class RenditionToTrim(NamedTuple):
    """What would go of one rendition.

    Attributes:
        number: Its number.
        place: Its table.
        keys: The keys that have versions which go.
        times: The times whose changes go.
        bytes: The estimated size of its rows, those that stay included.
    """

    number: int
    place: str
    keys: int
    times: int
    bytes: int


@dataclass(frozen=True)
class TrimPlan:
    """What a removal would do now.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        keep: How long versions are kept.
        before: The first readable time now.
        since: The first readable time afterwards.
        held_by: The reader that holds older times, in words; None where none does.
        renditions: What would go of each rendition that has something.
    """

    pipeline: str
    writer: str
    keep: timedelta
    before: int
    since: int
    held_by: str | None
    renditions: tuple[RenditionToTrim, ...]

    @property
    def lines(self) -> Iterator[str]:
        """The plan for people."""
        yield f"{self.pipeline}/{self.writer}: versions older than {duration_text(self.keep)} go"
        stays = "times before it are not readable any more" if self.since > self.before else "as before"
        yield f"  first readable time: {self.since} ({stays})"
        if self.held_by:
            yield f"  {self.held_by}, so what it can read stays"
        for one in self.renditions:
            yield (
                f"  rendition {one.number}, {one.place}: older versions of {one.keys:,} keys and the changes "
                f"of {one.times:,} times go; the table has about {one.bytes:,} bytes"
            )
        if not self.renditions:
            yield "  no version goes"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "keep": duration_text(self.keep),
            "since_before": self.before,
            "since": self.since,
            "held_by": self.held_by,
            "renditions": [one._asdict() for one in self.renditions],
        }


@dataclass(frozen=True)
class Trimming:
    """The removal of one collection's old versions; see ``VersionRemoval``.

    Attributes:
        renditions: The renditions of the writer.
    """

    renditions: WriterRenditions

    def plan(self) -> TrimPlan:
        """What would go now. Read-only."""
        of, keep, cut = self.renditions, self._keep, self._cut
        output, known = of.output, of.readers.load()
        found = forgettable(known, output.frontier, cut, of.clock())
        since = min(found.since, cut)
        held = None
        if (first := found.held_by) is not None:
            held = f"reader {first.reader} ({first.who}) holds {first.t}"
        renditions = tuple(self._look(one, since) for one in trimmable(output, of.progress, since))
        return TrimPlan(of.pipeline, of.writer, keep, known.since, found.since, held, renditions)

    def run(self) -> Trimmed:
        """Remove it. Can be repeated, and be interrupted at any time."""
        of = self.renditions
        return trim(of.store, of.readers, of.progress, self._cut, self)

    def drop_versions(self, rendition: Rendition, since: int) -> int:
        """See ``VersionRemoval.drop_versions``."""
        return self._target(rendition).drop_versions(since)

    def drop_changes(self, rendition: Rendition, since: int) -> int:
        """See ``VersionRemoval.drop_changes``."""
        return self._target(rendition).drop_changes(self._times(rendition, since))

    def _look(self, rendition: Rendition, since: int) -> RenditionToTrim:
        target = self._target(rendition)
        keys, times = target.count_obsolete(since), sum(1 for _ in self._times(rendition, since))
        return RenditionToTrim(rendition.number, rendition.place, keys, times, target.size())

    def _times(self, rendition: Rendition, since: int) -> Iterator[int]:
        """The times before ``since`` whose changes were not removed yet, newest first."""
        for binding in self.renditions.progress.bindings.before(since):
            if binding.t < rendition.trimmed:
                return
            yield binding.t

    def _target(self, rendition: Rendition) -> CollectionTarget:
        opened, writer = self.renditions.opened, self.renditions.writer
        built = build_rendition(opened.pipeline, opened.connections, writer, rendition).writer
        if not isinstance(built, CollectionWriter):
            kind = rendition.settings["writer"]["kind"]
            problem = f"its rendition {rendition.number} is of kind {kind}, which has no versions."
            raise NotPossible(self.renditions.pipeline, writer, problem)
        return built.target

    @property
    def _cut(self) -> int:
        return self.renditions.clock() - round(self._keep.total_seconds() * SECOND)

    @property
    def _keep(self) -> timedelta:
        of = self.renditions
        declared = of.declared
        if not isinstance(declared, CollectionDeclaration):
            problem = f"it is of kind {declared.kind}; only collections have versions."
            raise NotPossible(of.pipeline, of.writer, problem)
        if declared.keep is None:
            problem = "it has no `keep`, so all versions stay. Add one to its declaration: `keep: 90d`."
            raise NotPossible(of.pipeline, of.writer, problem)
        return declared.keep


def trimmed_document(trimmed: Trimmed) -> Mapping[str, Any]:
    """What a removal came to, for results of tasks and commands."""
    return {"since": trimmed.since, "removed": [one._asdict() for one in trimmed.renditions]}


def trimmed_line(trimmed: Trimmed) -> str:
    """What a removal came to, in one line."""
    keys, times = (sum(one[place] for one in trimmed.renditions) for place in (1, 2))
    return f"older versions of {keys:,} keys and the changes of {times:,} times removed"
