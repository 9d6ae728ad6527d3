"""The exchange of segments: a run of closed segments is replaced by others, and all other lines stay.

What takes the place of the old segments is made and written before the swap. Where capture published
meanwhile, only lines are exchanged again, in the manifest that is current then. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidemark.compaction.errors import PlanOutdated
from tidemark.log.model.manifest import (
    MAX_FILES_PER_SEGMENT,
    ClosedPart,
    ListLine,
    LogFile,
    Manifest,
    Segment,
    digest_of,
)
from tidemark.log.model.segment_list import segment_to_bytes


@dataclass(frozen=True, slots=True)
class Exchange:
    """Adjacent closed segments, and what takes their place.

    Attributes:
        plan: The digest of the plan.
        old: The digests of the old segments' lists, in order.
        first_id: The lowest id in the old segments.
        last_id: The highest id in the old segments.
        new: The new segments, in order.
    """

    plan: str
    old: tuple[str, ...]
    first_id: int
    last_id: int
    new: tuple[ClosedPart, ...]

    def apply(self, manifest: Manifest) -> Manifest:
        """The manifest with the new segments; the active segment and all other closed ones stay.

        Raises ``PlanOutdated`` where the old segments are no longer part of the log.
        """
        parts = list(self._opened(manifest, manifest.closed))
        digests = [list_digest(part) for part in parts]
        count = len(self.old)
        for begin in range(len(parts) - count + 1):
            if tuple(digests[begin : begin + count]) == self.old:
                closed = [*parts[:begin], *self.new, *parts[begin + count :]]
                return manifest.with_segments(closed, manifest.active)
        raise PlanOutdated(manifest.pipeline, self.plan, "its segments are no longer part of the log")

    def _opened(self, manifest: Manifest, parts: Iterable[ClosedPart]) -> Iterator[ClosedPart]:
        """The parts, with those indexes replaced by their lines that may have an old segment below them."""
        for part in parts:
            is_near = part.first_id <= self.last_id and part.last_id >= self.first_id
            if is_near and isinstance(part, ListLine) and part.level:
                yield from self._opened(manifest, manifest.lists.read_index(part))
            else:
                yield part


def list_digest(part: ClosedPart) -> str:
    """The digest of a segment's list, also where the list is not written yet."""
    return part.digest if isinstance(part, ListLine) else digest_of(segment_to_bytes(part))


def exchange_files(
    manifest: Manifest,
    plan: str,
    inputs: Sequence[LogFile],
    outputs: Sequence[LogFile],
    segment_bytes: int,
) -> Exchange:
    """The exchange that replaces files of closed segments, from the first segment with one to the last.

    Raises ``PlanOutdated`` where an input is no longer in a closed segment.
    """
    wanted = {file.path: file.digest for file in inputs}
    first, last = min(file.first_id for file in inputs), max(file.last_id for file in inputs)
    leaves = list(manifest.leaves())
    near = [number for number, leaf in enumerate(leaves) if leaf.first_id <= last and leaf.last_id >= first]
    own = [
        number for number in near if any(f.path in wanted for f in manifest.segment_of(leaves[number]).files)
    ]
    old = leaves[own[0] : own[-1] + 1] if own else []
    files = [file for leaf in old for file in manifest.segment_of(leaf).files]
    found = {file.path: file.digest for file in files}
    for path, digest in wanted.items():
        if found.get(path) != digest:
            raise PlanOutdated(manifest.pipeline, plan, f"{path} is no longer part of the log")
    kept = [file for file in files if file.path not in wanted]
    in_order = sorted([*kept, *outputs], key=lambda file: file.first_id)
    return exchange_of(plan, old, cut_segments(in_order, segment_bytes))


def exchange_of(plan: str, old: Sequence[ClosedPart], new: Iterable[ClosedPart]) -> Exchange:
    """The exchange of adjacent leaves of a manifest for these segments."""
    digests = tuple(list_digest(leaf) for leaf in old)
    first, last = min(leaf.first_id for leaf in old), max(leaf.last_id for leaf in old)
    return Exchange(plan, digests, first, last, tuple(new))


def cut_segments(files: Sequence[LogFile], segment_bytes: int) -> Iterator[Segment]:
    """Files as segments, closed by the same limits as those of capture."""
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
