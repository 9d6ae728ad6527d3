"""A head: the row of ``metajournal`` that says how far one entity has come.

Its write time is not part of it: a head is always written whole, so one time holds for all its cells.
"""

from datetime import UTC, date, datetime
from hashlib import sha1
from typing import NamedTuple
from uuid import UUID

_INCARNATIONS = UUID("6c1d0a54-6f0c-5c8b-9a57-2f4c8f1f5b7e").bytes


class Head(NamedTuple):
    """One entity's head. A writer has to write None as null, not to leave the cell as it was."""

    segment: int
    """Of ``metajournal``. A head found in an old segment stays there."""
    partition: int
    offset: int
    segment_size: int
    seq_nr: int
    """That of the last event appended, which need not be the highest."""
    delete_to: int | None
    created: int
    """Milliseconds; like ``updated`` the time of the binding, never of a clock."""
    updated: int
    expire_after: int | None = None
    """Nanoseconds; ``expiry.duration`` has the parts of the column."""
    expire_on: date | None = None
    record_id: UUID | None = None
    """Ties rows to their incarnation. Old heads and those made by a delete have none, and never get one."""
    origin: str | None = None

    @property
    def created_date(self) -> date:
        """The column of that name: always in UTC."""
        return datetime.fromtimestamp(self.created // 1000, UTC).date()


def record_id(topic: str, partition: int, key: str, offset: int) -> UUID:
    """The id of the incarnation that the append at ``offset`` begins: always the same for the same append."""
    name = f"{topic}/{partition}/{offset}/{key}".encode()
    return UUID(bytes=sha1(_INCARNATIONS + name).digest()[:16], version=5)
