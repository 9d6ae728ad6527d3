"""The rows that the tables will have once the tail is replicated: their present rows with the tail folded in.

Used for entities with a sequence number that was used twice, or that is lower than its predecessor. Reading
the tables and then the tail would give the wrong events. So the writer's own fold is applied to the tail, and
its result is merged over the tables' rows. The whole tail is held in memory. Reads nothing by itself.
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
    """A row of ``journal`` as the driver will return it once the tail is replicated.

    Cells that may be null come last.
    """

    seq_nr: int
    timestamp: datetime
    partition: int
    offset: int
    tags: tuple[str, ...]
    metadata: str
    headers: Mapping[str, str]
    origin: str | None
    version: str | None
    meta_record_id: UUID | None
    payload_type: str | None
    payload_txt: str | None
    payload_bin: bytes | None

    def over(self, older: Any) -> "TailRow":
        """The row after it is written over an older one: cells that are None here keep the older value."""
        kept = ("origin", "version", "meta_record_id", "payload_type", "payload_txt", "payload_bin")
        return replace(self, **{name: getattr(older, name) for name in kept if getattr(self, name) is None})


class Overlay:
    """The tail's effect on an entity's rows."""

    def __init__(self, effect: Effect) -> None:
        self._tombstones = {segment: up_to for segment, up_to, _ in _widest_last(effect)}
        self._rows: dict[int, list[TailRow]] = {}
        for row in effect.rows:
            self._rows.setdefault(row.segment, []).append(_tail_row(row))
        for rows in self._rows.values():
            rows.sort(key=_place)  # a stable sort: equal places stay in the order of their offsets

    def over(self, segment: int, first: int, pages: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        """The merged rows of a segment from ``first`` on, in order; ``pages`` are the tables' rows."""
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
    """Tombstones sorted so that one over a whole segment overrides one over a part of it."""
    yield from sorted(effect.tombstones, key=lambda one: one.up_to is None)


def _place(row: Any) -> tuple[int, datetime]:
    return row.seq_nr, row.timestamp


def _tail_row(row: Row) -> TailRow:
    same = {field.name: getattr(row, field.name) for field in fields(TailRow)}
    return TailRow(**same | {"timestamp": _EPOCH + timedelta(milliseconds=row.timestamp)})
