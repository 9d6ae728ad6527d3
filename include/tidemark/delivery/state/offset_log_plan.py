"""Which entries of an offset log are obsolete. Pure: decides on rows that the caller has read.

Kept are the newest entry and every rewind: no other row holds what they say. The position is in the writer's
``head``, the last id of a namespace in a row of its own, and what an operator acknowledged in
``acknowledged/`` and ``audit/`` rows. So commits and acknowledgements are obsolete once there is a newer
entry.

Entries are immutable and appended in order, so a plan stays valid whatever is committed before it is carried
out.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.consensus.objects import RowRange
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind

ACK = "ack/"
"""The prefix of an offset log's row names; the version of the commit follows."""


def ack_row(version: int) -> str:
    """The row name of the entry that the commit of a version appends."""
    return f"{ACK}{version:020d}"


@dataclass(frozen=True, slots=True)
class OffsetPlan:
    """The plan of compacting one writer's offset log.

    Attributes:
        pipeline: The writer's pipeline.
        writer: Its name.
        rows_before: Entries of the offset log now.
        rows_after: Entries that stay.
        bytes_before: Size of names and bodies, in UTF-8.
        bytes_after: Size of those that stay.
        kept: The rows that stay, newest first.
        rewinds: How many of those are rewinds.
        ranges: What is removed, newest first; between two of them is a rewind.
    """

    pipeline: str
    writer: str
    rows_before: int
    rows_after: int
    bytes_before: int
    bytes_after: int
    kept: tuple[str, ...]
    rewinds: int
    ranges: tuple[RowRange, ...]

    @property
    def removed(self) -> int:
        """How many rows are removed."""
        return self.rows_before - self.rows_after

    def to_dict(self) -> dict[str, Any]:
        """The form of summaries and of ``--json``."""
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "rows_before": self.rows_before,
            "rows_after": self.rows_after,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "rewinds": self.rewinds,
            "kept": list(self.kept),
            "ranges": [[rows.first, rows.end] for rows in self.ranges],
        }

    @classmethod
    def from_dict(cls, plan: Mapping[str, Any]) -> "OffsetPlan":
        """The plan that ``to_dict`` wrote; other keys are ignored."""
        fields = {name: plan[name] for name in cls.__slots__}
        ranges = tuple(RowRange(first, end) for first, end in plan["ranges"])
        return cls(**{**fields, "kept": tuple(plan["kept"]), "ranges": ranges})


def plan_offsets(pipeline: str, writer: str, newest_first: Iterable[tuple[str, str]]) -> OffsetPlan:
    """The plan for the rows of an offset log, each a name and a body, newest first."""
    kept: list[str] = []
    ranges: list[RowRange] = []
    rows = rewinds = removed = size = removed_size = 0
    is_gap = False
    for row, body in newest_first:
        bytes_ = len(row.encode()) + len(body.encode())
        rows, size = rows + 1, size + bytes_
        is_rewind = OffsetEntry.from_row(json.loads(body)).kind is OffsetEntryKind.REWIND
        if kept and not is_rewind:
            removed, removed_size, is_gap = removed + 1, removed_size + bytes_, True
            continue
        if is_gap:
            ranges.append(RowRange(_row_after(row), kept[-1]))
        kept.append(row)
        rewinds, is_gap = rewinds + is_rewind, False
    if is_gap:
        # From the very beginning, not from the oldest row: the range that a later compaction removes then
        # covers this one, and Cassandra keeps one tombstone, however often it is done.
        ranges.append(RowRange(ACK, kept[-1]))
    return OffsetPlan(
        pipeline,
        writer,
        rows_before=rows,
        rows_after=rows - removed,
        bytes_before=size,
        bytes_after=size - removed_size,
        kept=tuple(kept),
        rewinds=rewinds,
        ranges=tuple(ranges),
    )


def _row_after(row: str) -> str:
    return ack_row(int(row.removeprefix(ACK)) + 1)
