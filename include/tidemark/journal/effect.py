"""The fold's input and output: messages, and the writes they result in. Data only, no logic.

Every write carries the write time of its message. The writes of one or several folds can therefore be
repeated, batched differently or delayed, and never hide newer data.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from tidemark.journal.action import Action
from tidemark.journal.events import PayloadType
from tidemark.journal.head import Head


class Message(NamedTuple):
    """One action with its id, its Kafka partition and offset, and its times (microseconds since 1970)."""

    id: int
    partition: int
    offset: int
    write_time: int
    bound_at: int
    """The ``t`` of the binding that holds the message. It stands in for kafka-journal's current time."""
    action: Action


class Row(NamedTuple):
    """One row of ``journal``, columns in the order of the table. The cell of a None is not written."""

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
    """Rows of one ``journal`` segment to delete: those up to ``up_to``, or all of them where it is None."""

    segment: int
    up_to: int | None
    write_time: int


class HeadTombstone(NamedTuple):
    """The entity's row of ``metajournal`` to delete, in each of the segments that can hold it."""

    segments: tuple[int, ...]
    write_time: int


class Duplicate(NamedTuple):
    """An event whose sequence number was already in use. Its row is written like any other."""

    seq_nr: int
    offset: int


class Effect(NamedTuple):
    """The writes that a run of one entity's actions results in.

    Write them in this order: ``tombstones``, ``rows``, then ``head_tombstone`` and ``head``. A retry finds
    the rows to delete through the head, so the head must not change, let alone be deleted, before the rows.
    """

    topic: str
    key: str
    tombstones: tuple[Tombstone, ...]
    rows: tuple[Row, ...]
    head_tombstone: HeadTombstone | None
    head: Head | None
    """The head after the run, written whole where ``write_time`` is set; None where there is no head."""
    write_time: int | None
    """The write time of the last action applied; None where the run changed nothing."""
    applied: int
    """How many actions were applied."""
    skipped: int
    """How many actions the head already contained."""
    events: int
    """How many events the applied appends had, including those without a row in ``rows``."""
    duplicates: tuple[Duplicate, ...]
    hidden: int
    """How many events were appended at or below ``delete_to``. No reader could see them: they get no rows."""
    metadata_dropped: tuple[int, ...]
    """Offsets of the appends whose payload metadata was unreadable (``Events.metadata_dropped``)."""
