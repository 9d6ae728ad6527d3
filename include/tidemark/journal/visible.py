"""The visible state of one entity: its head, and the rows that a reader can get.

A row is hidden at or below ``delete_to``, where it belongs to another incarnation than the head, and in a
segment that readers do not query for it. Rows are held as digests by their place, never with their payloads.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from tidemark.journal.head import Head
from tidemark.journal.segments import head_segments, row_segment

_place = Struct(">qq")


class Hidden(StrEnum):
    """Why a stored row cannot be read."""

    NO_HEAD = "no head"
    DELETED = "deleted"
    """The sequence number is at or below ``delete_to``."""
    OTHER_INCARNATION = "other incarnation"
    """The row's ``meta_record_id`` is not the head's ``record_id``."""
    WRONG_SEGMENT = "wrong segment"
    """The head's ``segment_size`` gives another segment."""


class FoundRow(NamedTuple):
    """The parts of a ``journal`` row that a comparison needs."""

    segment: int
    seq_nr: int
    timestamp: int
    """Milliseconds."""
    meta_record_id: UUID | None
    digest: bytes


@dataclass(slots=True)
class Visible:
    """The visible state of one entity."""

    head: Head | None = None
    rows: dict[bytes, bytes] = field(default_factory=dict)
    """Place → digest of the row."""

    def take(self, row: FoundRow) -> None:
        """Adds a stored row, unless it is hidden."""
        if why_hidden(self.head, row) is None:
            self.rows[place_of(row.seq_nr, row.timestamp)] = row.digest


def place_of(seq_nr: int, timestamp: int) -> bytes:
    """The clustering key of a row as 16 bytes that sort in its order."""
    return _place.pack(seq_nr, timestamp)


def read_place(place: bytes) -> tuple[int, int]:
    """The sequence number and the timestamp of a place."""
    seq_nr, timestamp = _place.unpack(place)
    return seq_nr, timestamp


def why_hidden(head: Head | None, row: FoundRow) -> Hidden | None:
    """Why a row is hidden from readers; None where it is readable."""
    if head is None:
        return Hidden.NO_HEAD
    if head.record_id is not None and row.meta_record_id != head.record_id:
        return Hidden.OTHER_INCARNATION
    if row.seq_nr <= (head.delete_to or 0):
        return Hidden.DELETED
    if row.segment != row_segment(row.seq_nr, head.segment_size):
        return Hidden.WRONG_SEGMENT
    return None


def choose_head(key: str, heads: Mapping[int, Head]) -> Head | None:
    """The head that a reader uses, of those found by segment of ``metajournal``; None where there is none."""
    return next((heads[segment] for segment in head_segments(key) if segment in heads), None)


def visible_of(head: Head | None, rows: Iterable[FoundRow]) -> Visible:
    """The visible state of an entity with this head and these stored rows."""
    found = Visible(head)
    for row in rows:
        found.take(row)
    return found
