"""What goes into the fold and what comes out of it: messages, and the writes they amount to.

Every write carries the write time of the message it comes from, so the writes of one or many folds may be
repeated, cut differently or arrive late without hiding anything newer.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from tidemark.journal.action import Action
from tidemark.journal.events import PayloadType
from tidemark.journal.head import Head


class Message(NamedTuple):
    """One action and its place; both times in microseconds."""

    id: int
    partition: int
    offset: int
    write_time: int
    bound_at: int
    """The t of the binding that holds the message: what the original would have called now."""
    action: Action


class Row(NamedTuple):
    """One row of ``journal``, columns in the order of its table. None means: do not write the cell."""

    id: str
    topic: str
    segment: int
    seq_nr: int
    partition: int
    offset: int
    timestamp: int
    origin: str | None
    version: str | None
    meta_record_id: UUID | None
    tags: tuple[str, ...]
    metadata: str
    payload_type: PayloadType | None
    payload_txt: str | None
    payload_bin: bytes | None
    headers: Mapping[str, str]
    write_time: int


class Tombstone(NamedTuple):
    """Rows of one ``journal`` segment to delete: those up to ``up_to``, or with None the whole partition."""

    segment: int
    up_to: int | None
    write_time: int


class HeadTombstone(NamedTuple):
    """The entity's row of ``metajournal`` to delete, wherever it may be."""

    segments: tuple[int, ...]
    write_time: int


class Duplicate(NamedTuple):
    """An event whose sequence number had been used already. Its row is written like any other."""

    seq_nr: int
    offset: int


class Effect(NamedTuple):
    """The writes that a run of one entity's actions amounts to.

    Their order is: ``tombstones``, ``rows``, then ``head_tombstone`` and the head. A head must not move, and
    above all not vanish, before the rows have: it is what a second attempt knows them by.
    """

    topic: str
    key: str
    tombstones: tuple[Tombstone, ...]
    rows: tuple[Row, ...]
    head_tombstone: HeadTombstone | None
    head: Head | None
    """After the run, to be written whole when ``write_time`` is set. None: gone, or never there."""
    write_time: int | None
    """That of the last action applied; None when the run changed nothing."""
    applied: int
    skipped: int
    """Actions that the head already had."""
    events: int
    """Of the appends applied, whether their rows are still to be written or not."""
    duplicates: tuple[Duplicate, ...]
    hidden: int
    """Events appended at or below ``delete_to``: no reader could ever see them, so they have no rows."""
    metadata_dropped: tuple[int, ...]
    """Offsets of appends whose payload metadata was unreadable (``Events.metadata_dropped``)."""
