"""A head: the row of ``metajournal`` with the state of one entity after its last applied action.

The write time is not a field: a head is always written whole, so all its cells have the same one.
"""

from datetime import UTC, date, datetime
from hashlib import sha1
from typing import NamedTuple
from uuid import UUID

_INCARNATIONS = UUID("6c1d0a54-6f0c-5c8b-9a57-2f4c8f1f5b7e").bytes


class Head(NamedTuple):
    """One entity's head. A field that is None is written as null, so that an older value does not remain."""

    segment: int
    """The segment of ``metajournal``. A head found in a segment of the old space stays there."""
    partition: int
    offset: int
    segment_size: int
    seq_nr: int
    """The sequence number of the event appended last, which is not necessarily the highest."""
    delete_to: int | None
    created: int
    """Milliseconds. Like ``updated`` it is the time of a binding, never of a clock."""
    updated: int
    expire_after: int | None = None
    """Nanoseconds. ``codec.expire_after.duration`` converts them to the column's CQL duration."""
    expire_on: date | None = None
    record_id: UUID | None = None
    """The id of the incarnation, which its rows repeat. Heads of old versions and heads created by a delete
    have none and never get one."""
    origin: str | None = None

    @property
    def created_date(self) -> date:
        """The ``created_date`` column: the date of ``created`` in UTC."""
        return datetime.fromtimestamp(self.created // 1000, UTC).date()


def record_id(topic: str, partition: int, key: str, offset: int) -> UUID:
    """The id of the incarnation that the append at ``offset`` begins.

    Computed, so a retry gets the same one.
    """
    name = f"{topic}/{partition}/{offset}/{key}".encode()
    return UUID(bytes=sha1(_INCARNATIONS + name).digest()[:16], version=5)
