"""Verifies a log against its control rows: every digest, every id range, an explanation for every gap.

Read-only. Problems are collected instead of raised, so that an operator sees all of them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from tidemark.log.bindings.door import Bindings
from tidemark.log.bindings.verify_lists import list_problems
from tidemark.log.errors import LogError
from tidemark.log.files.binding_lists import BindingListReader
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition
from tidemark.log.model.loss import AcceptedLoss, LossKind
from tidemark.log.model.manifest import ClosedPart, ListLine, LogFile, Manifest, Segment
from tidemark.log.model.segment_list import line_of
from tidemark.log.publish import read_manifest
from tidemark.log.state.control import LogControl, LogHead


@dataclass(frozen=True, slots=True)
class LogVerification:
    """The result of a log's verification: its totals and all problems found."""

    pipeline: str
    end: int
    compacted_below: int
    files: int
    bytes: int
    messages: int
    bindings: int
    archived: int
    """How many of the bindings are in binding lists."""
    holes: int
    """Ids from ``compacted_below`` on that a binding owns and no message has: transaction markers, aborted
    records, losses."""
    dropped: int
    """Ids below ``compacted_below`` that no message has: dropped by compaction, or holes from the start."""
    losses: tuple[AcceptedLoss, ...]
    problems: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether no problem was found."""
        return not self.problems


class LogVerifier:
    """Verifies one log file by file, so that the caller can show the progress."""

    def __init__(self, control: LogControl, folder: LogFolder, head: LogHead | None = None) -> None:
        self._folder = folder
        self.manifest = read_manifest(control.pipeline, folder, head or control.log_head())
        self.bindings: list[Binding] = []
        self.losses = control.accepted_losses()
        self._problems = list(list_problems(BindingListReader(control.pipeline, folder.root), self.manifest))
        self._read_bindings(Bindings(control, folder))
        self._kept_below = 0

    def _read_bindings(self, bindings: Bindings) -> None:
        try:
            self.bindings += takewhile(lambda one: one.t <= self.manifest.t, bindings.every())
        except LogError as error:
            self._problems += [str(error)] if str(error) not in self._problems else []

    def files(self) -> Iterator[LogFile]:
        """Verify all files; yields each one after its verification."""
        for file in (
            file for segment in readable_segments(self.manifest, self._problems) for file in segment.files
        ):
            try:
                self._folder.verify(file)
                self._folder.verify_range(file)
                self._problems += self._strangers(file)
                self._kept_below += self._folder.count_between(file, 0, self.manifest.compacted_below - 1)
            except LogError as error:
                self._problems.append(str(error))
            yield file

    def _strangers(self, file: LogFile) -> Iterator[str]:
        """The first message of a file of several bindings with an id that its binding does not own."""
        if file.first_t == file.t:
            return  # ``verify_range`` covers a file of one binding
        first = bisect_left(self.bindings, file.first_t, key=lambda one: one.t)
        end = bisect_right(self.bindings, file.t, lo=first, key=lambda one: one.t)
        among = self.bindings[first:end]
        owned = [(*binding.owned[file.place], binding.t) for binding in among if file.place in binding.owned]
        if not owned:
            return
        firsts, lasts, times = (np.array(column, np.int64) for column in zip(*owned, strict=True))
        for batch in self._folder.read_file(file, ["id", "t"]):
            ids, found = batch.column("id").to_numpy(), batch.column("t").to_numpy()
            owner = np.searchsorted(firsts, ids, side="right") - 1
            wrong = (owner < 0) | (ids > lasts[owner]) | (found != times[owner])
            if wrong.any():
                yield (
                    f"{file.path} has id {ids[wrong][0]}, which no binding of {file.topic}/{file.partition} "
                    f"from {file.first_t} to {file.t} owns as the message says"
                )
                return

    def conclude(self) -> LogVerification:
        """The result; call it after ``files`` is exhausted."""
        manifest = self.manifest
        ranges = [*range_problems(manifest, self.bindings), *offset_problems(self.bindings, self.losses)]
        owned = sum(binding.width for binding in self.bindings)
        # ``compacted_below`` may be greater than the number of owned ids.
        dropped = min(manifest.compacted_below, owned) - self._kept_below
        return LogVerification(
            pipeline=manifest.pipeline,
            end=manifest.end,
            compacted_below=manifest.compacted_below,
            files=manifest.file_count,
            bytes=manifest.bytes,
            messages=manifest.count,
            bindings=len(self.bindings),
            archived=manifest.bindings.count,
            holes=owned - manifest.count - dropped,
            dropped=dropped,
            losses=tuple(self.losses),
            problems=(*self._problems, *ranges),
        )


def readable_segments(manifest: Manifest, problems: list[str]) -> Iterator[Segment]:
    """The segments in order, except those whose list is missing or damaged; lists are read one at a time.

    Adds what is wrong with lists to ``problems``: also a line with other totals than its list.
    """
    for leaf in _readable_leaves(manifest, manifest.closed, problems):
        try:
            segment = manifest.segment_of(leaf)
        except LogError as error:
            problems.append(str(error))
            continue
        problems += _line_problems(leaf, [segment])
        yield segment
    if manifest.active.files:
        yield manifest.active


def _readable_leaves(
    manifest: Manifest, parts: Iterable[ClosedPart], problems: list[str]
) -> Iterator[ClosedPart]:
    for part in parts:
        if not isinstance(part, ListLine) or not part.level:
            yield part
            continue
        try:
            lines = manifest.lists.read_index(part)
        except LogError as error:
            problems.append(str(error))
            continue
        problems += _line_problems(part, lines)
        yield from _readable_leaves(manifest, lines, problems)


def _line_problems(line: ClosedPart, parts: Sequence[ClosedPart]) -> Iterator[str]:
    if isinstance(line, ListLine):
        found = line_of(line.path, line.digest, line.level, parts)
        for name, value in found.to_row().items():
            if (said := getattr(line, name)) != value:
                yield f"{line.path} has {name} {value}, but the line that names it says {said}"


def range_problems(manifest: Manifest, bindings: Sequence[Binding]) -> Iterator[str]:
    """Ids with two owners or none: bindings that leave gaps, files outside of their bindings, overlaps."""
    base, t = 0, NOTHING_YET
    for binding in bindings:
        if binding.base != base:
            yield f"the binding at {binding.t} begins with id {binding.base} instead of {base}"
        if binding.t <= t:
            yield f"the binding at {binding.t} does not follow the one at {t}"
        base, t = binding.end + 1, binding.t
    if base - 1 != manifest.end:
        yield f"the log ends at id {manifest.end}, its bindings at {base - 1}"
    yield from _overlaps(manifest)
    by_t = {binding.t: binding for binding in bindings}
    for file in (file for segment in readable_segments(manifest, []) for file in segment.files):
        for t, id_ in ((file.first_t, file.first_id), (file.t, file.last_id)):
            owner = by_t.get(t)
            if owner is None:
                yield f"{file.path} belongs to a binding at {t} that does not exist"
                break
            first, last = owner.owned.get(file.place, (0, -1))
            if not first <= id_ <= last:
                yield (
                    f"{file.path} has ids {file.first_id} to {file.last_id}, but of {file.topic}/"
                    f"{file.partition} the binding at {owner.t} owns {first} to {last}"
                )
                break


def _overlaps(manifest: Manifest) -> Iterator[str]:
    """Overlapping files of one partition, and files of the active segment with ids below another segment."""
    reached: dict[TopicPartition, int] = {}
    highest = NOTHING_YET
    for segment in readable_segments(manifest, []):
        is_active = segment is manifest.active
        below = highest
        for file in segment.files:
            before = reached.get(file.place, NOTHING_YET)
            if file.first_id <= before:
                yield (
                    f"{file.path} begins with id {file.first_id}, the file before it of {file.topic}/"
                    f"{file.partition} ends at {before}"
                )
            if is_active and file.first_id <= below:
                yield (
                    f"{file.path} begins with id {file.first_id} in the active segment, below {below}, which "
                    "is in another"
                )
            if file.last_id < file.first_id or file.t < file.first_t:
                yield f"{file.path} ends before it begins"
            reached[file.place] = max(file.last_id, before)
            highest = max(highest, file.last_id)


def offset_problems(bindings: Sequence[Binding], losses: Sequence[AcceptedLoss]) -> Iterator[str]:
    """Offsets that no binding covers and no accepted loss explains."""
    reached: dict[tuple[str, int], int] = {}
    for binding in bindings:
        for s in binding.slices:
            before = reached.get((s.topic, s.partition))
            if before not in (None, s.lower) and not _explained(s.topic, s.partition, binding, losses):
                yield (
                    f"{s.topic}/{s.partition}: the binding at {binding.t} begins at offset {s.lower} instead "
                    f"of {before}, and no accepted loss explains it"
                )
            reached[s.topic, s.partition] = s.upper


def _explained(topic: str, partition: int, binding: Binding, losses: Sequence[AcceptedLoss]) -> bool:
    """Whether an accepted loss before ``binding`` explains the first offset of its slice."""
    whole_topic = (LossKind.RECREATED, LossKind.DELETED)
    return any(
        one.after < binding.base
        and one.loss.topic == topic
        and (one.loss.partition == partition or one.loss.kind in whole_topic)
        for one in losses
    )
