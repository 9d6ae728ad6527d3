"""Which closed segments are merged next: adjacent ones, a bounded amount of work at a time.

The newest segments are merged each by itself, so that their files stay few and their id ranges narrow. Older
small segments are merged with their neighbours of a similar size, so a message is rewritten a number of times
that grows with the logarithm of the log's size only. Decided by the lines of the manifest. Pure.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tidemark.compaction.exchange import list_digest
from tidemark.log.model.manifest import ClosedPart, digest_of

ALONE = 64
"""So many of the newest closed segments are merged each by itself."""
NEIGHBOURS = 8
"""So many adjacent older segments of a similar size become one segment."""


@dataclass(frozen=True, slots=True)
class WorkLimit:
    """How much one merge may rewrite."""

    files: int = 5_000
    bytes: int = 256 * 10**6


@dataclass(frozen=True, slots=True)
class MergeWork:
    """Adjacent closed segments; those of each group become one segment."""

    groups: tuple[tuple[ClosedPart, ...], ...]

    @property
    def leaves(self) -> tuple[ClosedPart, ...]:
        """All segments, in order."""
        return tuple(leaf for group in self.groups for leaf in group)


def choose_work(
    leaves: Sequence[ClosedPart], segment_bytes: int, limit: WorkLimit, settled: Collection[str] = ()
) -> MergeWork | None:
    """The next merge of these adjacent segments; None where there is nothing to merge.

    ``settled`` has ``settled_by`` of work that was found to have nothing to merge.
    """
    alone = _alone(leaves, segment_bytes, limit, settled)
    return alone or _together(leaves, segment_bytes, limit, settled)


def settled_by(work: MergeWork) -> Iterator[str]:
    """The digests of work that was found to have nothing to merge: of every segment by itself, and of the
    segments together."""
    yield from (list_digest(leaf) for leaf in work.leaves)
    yield from (_run_digest(group) for group in work.groups)


def _run_digest(leaves: Sequence[ClosedPart]) -> str:
    return digest_of("+".join(list_digest(leaf) for leaf in leaves).encode())


def _alone(
    leaves: Sequence[ClosedPart], segment_bytes: int, limit: WorkLimit, settled: Collection[str]
) -> MergeWork | None:
    """The newest run of segments with several small files of a partition."""
    run: list[ClosedPart] = []
    files = size = 0
    for leaf in reversed(leaves):
        is_wanted = (
            leaf.surplus > 0
            and 2 * leaf.bytes < segment_bytes * leaf.file_count
            and list_digest(leaf) not in settled
        )
        is_too_much = run and (files + leaf.file_count > limit.files or size + leaf.bytes > limit.bytes)
        if run and (not is_wanted or is_too_much):
            break
        if is_wanted:
            run.append(leaf)
            files, size = files + leaf.file_count, size + leaf.bytes
    return MergeWork(tuple((leaf,) for leaf in reversed(run))) if run else None


def _together(
    leaves: Sequence[ClosedPart], segment_bytes: int, limit: WorkLimit, settled: Collection[str]
) -> MergeWork | None:
    """The oldest run of segments of a similar size, of the smallest such size."""
    older = leaves[:-ALONE]
    most = min(segment_bytes, limit.bytes)
    for size in sorted({_size_class(leaf) for leaf in older}):
        for run in _runs(older, size):
            rest = run
            while _is_worth_it(taken := _within(rest, most, limit.files)):
                if not settled or _run_digest(taken) not in settled:
                    return MergeWork((tuple(taken),))
                rest = rest[len(taken) :]
    return None


def _is_worth_it(taken: Sequence[ClosedPart]) -> bool:
    """A large segment is not rewritten for the sake of a few small ones."""
    sizes = [leaf.bytes for leaf in taken]
    return len(taken) >= NEIGHBOURS and 4 * max(sizes) <= sum(sizes)


def _size_class(leaf: ClosedPart) -> int:
    """Segments of one class differ in size by less than a factor of eight."""
    return leaf.bytes.bit_length() // 3


def _runs(leaves: Sequence[ClosedPart], size: int) -> Iterator[list[ClosedPart]]:
    """Adjacent segments of a size class or smaller."""
    run: list[ClosedPart] = []
    for leaf in leaves:
        if _size_class(leaf) <= size:
            run.append(leaf)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _within(run: Sequence[ClosedPart], most: int, most_files: int) -> list[ClosedPart]:
    """The first segments of a run that are together within the limits."""
    taken: list[ClosedPart] = []
    size = files = 0
    for leaf in run:
        size, files = size + leaf.bytes, files + leaf.file_count
        if size > most or files > most_files:
            break
        taken.append(leaf)
    return taken
