"""The plan of a compaction: which files are rewritten, what that saves, and what limits it.

The same planner serves dry runs and real ones. A file is rewritten where messages in it are dropped, or
together with small neighbours of its partition. Other files are left alone, so that a second run finds
nothing to do. Pure.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

import msgspec

from tidemark.compaction.census import Census
from tidemark.compaction.drops import Dropped
from tidemark.compaction.policies.rules import CompactionRules, inactive_segments
from tidemark.compaction.watermark import Limit, Reason, Watermark, active_segment_begins
from tidemark.log.model.manifest import LogFile, Manifest, Segment

MOST_MESSAGES = 1_000_000
"""The limit of a file that compaction writes: a task keeps a few numbers per message in memory."""
NEIGHBOURS = 4
"""So many adjacent small files are merged even where nothing in them is dropped. Merging fewer is not worth
the rewrite."""


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """One inactive segment, before and after; ``bytes_after`` is estimated from the kept messages."""

    first_id: int
    last_id: int
    files: int
    messages_before: int
    messages_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Adjacent files of one partition that become one file, or none where no message is kept.

    Attributes:
        kept: The number of messages that are kept.
        bytes: The estimated size of the new file.
    """

    files: tuple[LogFile, ...]
    kept: int
    bytes: int

    @property
    def name(self) -> str:
        """Partition and ids, for messages."""
        first, last = self.files[0], self.files[-1]
        return f"{first.topic}/{first.partition} ids {first.first_id} to {last.last_id}"


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a compaction is going to do.

    Attributes:
        digest: The digest of input files and rules. Plans with the same digest produce the same files.
        now: The first time not yet bound when the plan was made (µs).
        active_from: The first id of the active segment, which is not touched.
        active_files: The files of the active segment.
        groups: The files that are rewritten.
        segments: All inactive segments.
        reasons: How many messages are dropped, by reason.
    """

    pipeline: str
    digest: str
    now: int
    rules: CompactionRules
    watermark: Watermark
    active_from: int
    active_files: tuple[str, ...]
    groups: tuple[FileGroup, ...]
    segments: tuple[SegmentPlan, ...]
    census: Census = field(default_factory=Census)
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[LogFile, ...]:
        """The files that are rewritten."""
        return tuple(file for group in self.groups for file in group.files)

    @property
    def is_empty(self) -> bool:
        """Whether no file is rewritten."""
        return not self.groups

    @property
    def dropped(self) -> int:
        """The number of messages that are dropped."""
        return sum(self.reasons.values())

    @property
    def held_back_by(self) -> str:
        """The name of the lowest limit of the watermark."""
        return self.watermark.held_back_by

    @property
    def bytes_before(self) -> int:
        """The size of all inactive segments."""
        return sum(segment.bytes_before for segment in self.segments)

    @property
    def bytes_after(self) -> int:
        """The estimated size of these segments after the compaction."""
        return sum(segment.bytes_after for segment in self.segments)

    def to_bytes(self) -> bytes:
        """The content of the plan's file; equal plans give equal bytes."""
        body = {**asdict(self), "rules": self.rules.to_row(), "census": msgspec.to_builtins(self.census)}
        return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "CompactionPlan":
        """The plan that a file holds."""
        body: dict[str, Any] = json.loads(data)
        rules = body.pop("rules")
        rules |= {name: tuple(rules[name]) for name in ("pins", "acknowledged")}
        for name in ("recreated", "topic_ids"):
            rules[name] = tuple((topic, one) for topic, one in rules.get(name, ()))
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
    """The plan for a log, from the census and the drops of all files below the watermark."""
    by_path = {one.path: one for one in drops}
    inactive = list(inactive_segments(manifest))
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
    return CompactionPlan(
        manifest.pipeline,
        digest,
        now,
        rules,
        watermark,
        active_segment_begins(manifest),
        tuple(file.path for file in manifest.active.files),
        groups,
        tuple(_segment_plan(segment, by_file) for segment in inactive),
        census,
        reasons,
    )


@dataclass(frozen=True, slots=True)
class _Fate:
    """One file, with the number of messages that are kept and their estimated size."""

    file: LogFile
    kept: int
    bytes: int

    @property
    def is_dirty(self) -> bool:
        """Whether messages in it are dropped."""
        return self.kept < self.file.count

    @classmethod
    def of(cls, file: LogFile, dropped: Dropped | None) -> "_Fate":
        kept = file.count - (dropped.dropped if dropped else 0)
        return cls(file, kept, file.bytes * kept // file.count if file.count else 0)


def merged_groups(files: Iterable[LogFile], segment_bytes: int) -> tuple[FileGroup, ...]:
    """The groups of two and more adjacent files that become one file, with nothing dropped."""
    in_order = sorted(files, key=lambda file: (file.place, file.first_id))
    fates = (_Fate.of(file, None) for file in in_order)
    return tuple(
        group
        for _, neighbours in groupby(fates, key=lambda fate: fate.file.place)
        for group in _groups(list(neighbours), segment_bytes, least=2)
    )


def _groups(fates: Sequence[_Fate], segment_bytes: int, least: int = NEIGHBOURS) -> Iterator[FileGroup]:
    """Groups of adjacent files: closed at half a segment, or at half of ``MOST_MESSAGES``."""
    for run in _runs(fates, segment_bytes):
        dirty = [number for number, fate in enumerate(run) if fate.is_dirty]
        if dirty or len(run) >= least:
            files = tuple(fate.file for fate in run)
            yield FileGroup(files, sum(fate.kept for fate in run), sum(fate.bytes for fate in run))


def _runs(fates: Sequence[_Fate], segment_bytes: int) -> Iterator[list[_Fate]]:
    run: list[_Fate] = []
    size, full = 0, segment_bytes * MOST_MESSAGES
    for fate in fates:
        # Bytes and messages are both limited, so the larger share of a full file counts.
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
