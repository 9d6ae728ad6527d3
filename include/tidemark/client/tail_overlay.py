"""The rows that the tables will have once the tail is replicated: theirs, with the tail folded onto them.

For entities whose numbers went back: used twice, or lower than the one before. Their events cannot be told by
reading the tables and then the tail, so the tail is folded by the writer's own fold, and the outcome is laid
over the tables' rows. It is held in memory, which nothing else that is read needs. Reads nothing by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby
from typing import Any
from uuid import UUID

from tidemark.journal.effect import Effect, Row

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class TailRow:
    """A row of ``journal`` as the driver would give it, once the tail is replicated."""

    seq_nr: int
    timestamp: datetime
    partition: int
    offset: int
    origin: str | None
    version: str | None
    meta_record_id: UUID | None
    tags: tuple[str, ...]
    metadata: str
    payload_type: str | None
    payload_txt: str | None
    payload_bin: bytes | None
    headers: Mapping[str, str]

    def over(self, older: Any) -> "TailRow":
        """The row when it is written over another one: cells that it has nothing for stay."""
        kept = ("origin", "version", "meta_record_id", "payload_type", "payload_txt", "payload_bin")
        return replace(self, **{name: getattr(older, name) for name in kept if getattr(self, name) is None})


class Overlay:
    """What the tail makes of an entity's rows."""

    def __init__(self, effect: Effect) -> None:
        self._tombstones = {segment: up_to for segment, up_to, _ in _widest_last(effect)}
        self._rows: dict[int, list[TailRow]] = {}
        for row in effect.rows:
            self._rows.setdefault(row.segment, []).append(_tail_row(row))
        for rows in self._rows.values():
            rows.sort(key=_place)  # stays in the order of the offsets where places are the same

    def over(self, segment: int, first: int, pages: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        """The rows of a segment from a number on, in order; ``pages`` are those of the tables."""
        old = (row for page in pages for row in page if not self._removes(segment, row))
        new = (row for row in self._rows.get(segment, ()) if row.seq_nr >= first)
        for _, rows in groupby(merge(old, new, key=_place), _place):
            found, *newer = rows
            for row in newer:
                found = row.over(found)
            yield (found,)

    def _removes(self, segment: int, row: Any) -> bool:
        if segment not in self._tombstones:
            return False
        up_to = self._tombstones[segment]
        return up_to is None or bool(row.seq_nr <= up_to)


def _widest_last(effect: Effect) -> Iterator[tuple[int, int | None, int]]:
    """A segment may have a tombstone over a part of it and one over all: the latter counts."""
    yield from sorted(effect.tombstones, key=lambda one: one.up_to is None)


def _place(row: Any) -> tuple[int, datetime]:
    return row.seq_nr, row.timestamp


def _tail_row(row: Row) -> TailRow:
    same = {field.name: getattr(row, field.name) for field in fields(TailRow)}
    return TailRow(**same | {"timestamp": _EPOCH + timedelta(milliseconds=row.timestamp)})
