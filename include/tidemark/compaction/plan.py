"""The plan of a compaction: which files are written anew, what that gains, and what is in its way.

Pure. The same planner serves a dry run and a real one. A file is written anew when something in it goes, or
together with small neighbours of its partition; a file in which nothing goes and that is large, or has few
small neighbours, is left alone, so that a second run finds nothing to do.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any

import msgspec

from tidemark.compaction.census import Census
from tidemark.compaction.drops import Dropped
from tidemark.compaction.errors import PlanOutdated
from tidemark.compaction.policies.rules import CompactionRules, inactive_segments
from tidemark.compaction.watermark import Limit, Reason, Watermark, active_segment_begins
from tidemark.log.model.manifest import MAX_FILES_PER_SEGMENT, LogFile, Manifest, Segment

MOST_MESSAGES = 1_000_000
"""Of a file that compaction writes: a task has to hold some numbers of each, however few bytes they are."""
NEIGHBOURS = 4
"""So many small files in a row become one even when nothing in them goes. Fewer are left alone: what is
written anew for the sake of order must be worth it."""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Neighbours of one partition that become one file, or none when nothing of them stays."""

    files: tuple[LogFile, ...]
    kept: int
    """How many messages stay."""
    bytes: int
    """What the new file is estimated to be."""

    @property
    def name(self) -> str:
        """The place of the group, for people."""
        first, last = self.files[0], self.files[-1]
        return f"{first.topic}/{first.partition} ids {first.first_id} to {last.last_id}"


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """One inactive segment before, and what is left of it."""

    first_id: int
    last_id: int
    files: int
    messages_before: int
    messages_after: int
    bytes_before: int
    bytes_after: int
    """Estimated from the messages that stay."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a compaction is going to do."""

    pipeline: str
    digest: str
    """Of the files looked at and the rules: the same plan gives the same files."""
    now: int
    """The first time not yet bound when the plan was made (µs)."""
    rules: CompactionRules
    watermark: Watermark
    active_from: int
    """The first id of the active segment, which is not touched …"""
    active_files: tuple[str, ...]
    """… and its files."""
    groups: tuple[FileGroup, ...]
    segments: tuple[SegmentPlan, ...]
    census: Census = field(default_factory=Census)
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many messages go, by reason."""

    @property
    def inputs(self) -> tuple[LogFile, ...]:
        """The files that are written anew."""
        return tuple(file for group in self.groups for file in group.files)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to gain."""
        return not self.groups

    @property
    def dropped(self) -> int:
        """How many messages go."""
        return sum(self.reasons.values())

    @property
    def held_back_by(self) -> str:
        """What holds the watermark back."""
        return self.watermark.held_back_by

    @property
    def bytes_before(self) -> int:
        """The size of all inactive segments."""
        return sum(segment.bytes_before for segment in self.segments)

    @property
    def bytes_after(self) -> int:
        """What they are estimated to be afterwards."""
        return sum(segment.bytes_after for segment in self.segments)

    def to_bytes(self) -> bytes:
        """The plan's file; the same plan gives the same bytes."""
        body = {**asdict(self), "rules": self.rules.to_row(), "census": msgspec.to_builtins(self.census)}
        return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "CompactionPlan":
        """The plan a file holds."""
        body: dict[str, Any] = json.loads(data)
        rules = body.pop("rules")
        rules |= {name: tuple(rules[name]) for name in ("pins", "acknowledged")}
        rules["recreated"] = tuple((topic, first_id) for topic, first_id in rules.get("recreated", ()))
        mark = body.pop("watermark")
        limits = tuple(Limit(**{**one, "reason": Reason(one["reason"])}) for one in mark["limits"])
        groups = tuple(
            FileGroup(tuple(LogFile(**file) for file in one["files"]), one["kept"], one["bytes"])
            for one in body.pop("groups")
        )
        return cls(
            rules=CompactionRules(**rules),
            watermark=Watermark(mark["id"], limits),
            groups=groups,
            segments=tuple(SegmentPlan(**one) for one in body.pop("segments")),
            census=msgspec.convert(body.pop("census"), Census),
            active_files=tuple(body.pop("active_files")),
            **body,
        )


def make_plan(
    manifest: Manifest,
    digest: str,
    now: int,
    watermark: Watermark,
    rules: CompactionRules,
    census: Census,
    drops: Iterable[Dropped],
) -> CompactionPlan:
    """The plan for a log of which every inactive file has been looked at."""
    by_path = {one.path: one for one in drops}
    inactive = inactive_segments(manifest)
    files = sorted(
        (file for segment in inactive for file in segment.files),
        key=lambda file: (file.topic, file.partition, file.first_id),
    )
    fates = [_Fate.of(file, by_path.get(file.path)) for file in files]
    by_file = {fate.file.path: fate for fate in fates}
    groups = tuple(
        group
        for _, neighbours in groupby(fates, key=lambda fate: (fate.file.topic, fate.file.partition))
        for group in _groups(list(neighbours), rules.segment_bytes)
    )
    reasons = {
        name: total
        for name in ("nothing", "purged", "deleted", "superseded")
        if (total := sum(getattr(one, name) for one in by_path.values()))
    }
    active = manifest.segments[-1].files if manifest.segments else ()
    return CompactionPlan(
        manifest.pipeline,
        digest,
        now,
        rules,
        watermark,
        active_segment_begins(manifest),
        tuple(file.path for file in active),
        groups,
        tuple(_segment_plan(segment, by_file) for segment in inactive),
        census,
        reasons,
    )


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of one file."""

    file: LogFile
    kept: int
    bytes: int

    @property
    def is_dirty(self) -> bool:
        """Whether something in it goes."""
        return self.kept < self.file.count

    @classmethod
    def of(cls, file: LogFile, dropped: Dropped | None) -> "_Fate":
        kept = file.count - (dropped.dropped if dropped else 0)
        return cls(file, kept, file.bytes * kept // file.count if file.count else 0)


def _groups(fates: Sequence[_Fate], segment_bytes: int) -> Iterator[FileGroup]:
    """Neighbours together until they are half a segment, or half of what one task should hold."""
    for run in _runs(fates, segment_bytes):
        dirty = [number for number, fate in enumerate(run) if fate.is_dirty]
        if dirty or len(run) >= NEIGHBOURS:
            files = tuple(fate.file for fate in run)
            yield FileGroup(files, sum(fate.kept for fate in run), sum(fate.bytes for fate in run))


def _runs(fates: Sequence[_Fate], segment_bytes: int) -> Iterator[list[_Fate]]:
    run: list[_Fate] = []
    size, full = 0, segment_bytes * MOST_MESSAGES
    for fate in fates:
        # Whichever it has more of, for its share of a full file.
        share = max(fate.bytes * MOST_MESSAGES, fate.kept * segment_bytes)
        is_large = not fate.is_dirty and 2 * share >= full
        if run and (is_large or size + share > full):
            yield run
            run, size = [], 0
        run.append(fate)
        size += share
        if is_large or 2 * size >= full:
            yield run
            run, size = [], 0
    if run:
        yield run


def _segment_plan(segment: Segment, fates: Mapping[str, _Fate]) -> SegmentPlan:
    own = [fates[file.path] for file in segment.files]
    return SegmentPlan(
        min(file.first_id for file in segment.files),
        max(file.last_id for file in segment.files),
        len(own),
        sum(file.count for file in segment.files),
        sum(fate.kept for fate in own),
        segment.bytes,
        sum(fate.bytes for fate in own),
    )


def replace_files(manifest: Manifest, plan: CompactionPlan, outputs: Sequence[LogFile]) -> Manifest:
    """The manifest with the plan's inputs replaced, whatever has been published since behind them."""
    there = {file.path: file.digest for file in manifest.files}
    for file in plan.inputs:
        if there.get(file.path) != file.digest:
            raise PlanOutdated(plan.pipeline, plan.digest, f"{file.path} is no longer part of the log")
    replaced = {file.path for file in plan.inputs}
    before = [s for s in manifest.segments if all(file.first_id < plan.active_from for file in s.files)]
    after = manifest.segments[len(before) :]
    kept = [file for segment in before for file in segment.files if file.path not in replaced]
    in_order = sorted([*kept, *outputs], key=lambda file: file.first_id)
    segments = (*_segments(in_order, plan.rules.segment_bytes), *after)
    if not plan.dropped:  # a log of which nothing was taken out is as complete as it was
        return replace(manifest, segments=segments)
    return manifest.with_compacted(segments, plan.rules.watermark, plan.rules.policy)


def _segments(files: Sequence[LogFile], segment_bytes: int) -> Iterator[Segment]:
    """Closed where the log itself would close them."""
    run: list[LogFile] = []
    size = 0
    for file in files:
        if run and (size >= segment_bytes or len(run) >= MAX_FILES_PER_SEGMENT):
            yield Segment(tuple(run))
            run, size = [], 0
        run.append(file)
        size += file.bytes
    if run:
        yield Segment(tuple(run))
