"""Lists of closed segments: the content of list files, their lines, and their index.

A list is immutable. A segment's list holds the files of one closed segment, an index holds lines of a level.
Old lines are folded into indexes, so the number of lines in a manifest grows with the logarithm of the number
of segments. Pure: ``LogFolder`` writes and reads the files.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tidemark.log.model.manifest import ClosedPart, ListLine, LogFile, Manifest, Segment, rows_to_bytes

FANOUT = 32
"""The number of lines in an index. A manifest has fewer than twice as many lines of each level."""

Put = Callable[[bytes], tuple[str, str]]
"""Writes a list under a new name; returns its path and digest."""


def segment_to_bytes(segment: Segment) -> bytes:
    """The content of a segment's list."""
    return rows_to_bytes({"files": [file.to_row() for file in segment.files]})


def segment_from_bytes(data: bytes) -> Segment:
    """The segment in a list."""
    return Segment(tuple(LogFile(**row) for row in json.loads(data)["files"]))


def index_to_bytes(lines: Sequence[ListLine]) -> bytes:
    """The content of an index."""
    return rows_to_bytes({"lists": [line.to_row() for line in lines]})


def index_from_bytes(data: bytes) -> tuple[ListLine, ...]:
    """The lines of an index."""
    return tuple(ListLine(**row) for row in json.loads(data)["lists"])


def line_of(path: str, digest: str, level: int, parts: Sequence[ClosedPart]) -> ListLine:
    """The line of a list with these parts: one segment, or lines of the level below."""
    return ListLine(
        path,
        digest,
        level,
        segments=sum(part.segments for part in parts),
        file_count=sum(part.file_count for part in parts),
        surplus=sum(part.surplus for part in parts),
        count=sum(part.count for part in parts),
        bytes=sum(part.bytes for part in parts),
        first_id=min(part.first_id for part in parts),
        last_id=max(part.last_id for part in parts),
        first_t=min(part.first_t for part in parts),
        t=max(part.t for part in parts),
    )


def with_lists(manifest: Manifest, put: Put) -> Manifest:
    """The manifest with a list for every closed segment, and old lines folded into indexes.

    ``put`` is called for the lists that do not exist yet, and for no other.
    """
    return replace(manifest, closed=tuple(folded(listed(manifest.closed, put), put)))


def listed(parts: Iterable[ClosedPart], put: Put) -> list[ListLine]:
    """The parts as lines: ``put`` writes the lists of segments."""
    return [
        line_of(*put(segment_to_bytes(part)), 0, [part]) if isinstance(part, Segment) else part
        for part in parts
    ]


def folded(lines: Sequence[ListLine], put: Put) -> list[ListLine]:
    """The lines with the oldest ones in indexes: levels never rise from one line to the next, and fewer than
    ``2 * FANOUT`` lines have the same level.
    """
    result, level = list(lines), 0
    while any(line.level >= level for line in result):
        result = _with_level_folded(result, level, put)
        level += 1
    return result


def _with_level_folded(lines: Sequence[ListLine], level: int, put: Put) -> list[ListLine]:
    higher = [number for number, line in enumerate(lines) if line.level > level]
    last_higher = higher[-1] if higher else -1
    result: list[ListLine] = []
    waiting: list[ListLine] = []

    def fold(count: int) -> None:
        oldest = waiting[:count]
        del waiting[:count]
        result.append(line_of(*put(index_to_bytes(oldest)), level + 1, oldest))

    for number, line in enumerate(lines):
        if line.level == level:
            waiting.append(line)
            if len(waiting) >= 2 * FANOUT:
                fold(FANOUT)
        else:
            if waiting and number <= last_higher:  # a compaction or a merge has left them between indexes
                fold(len(waiting))
            result += [*waiting, line]
            waiting.clear()
    return [*result, *waiting]
