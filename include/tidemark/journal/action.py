"""Actions: the decoded content of kafka-journal messages.

``codec.record`` has their Kafka form and ``fold`` their effect; this module does neither. One action is
created for every message, so they are msgspec structs: creating a frozen dataclass takes many times as long.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from tidemark.journal.codec.payload import Form, encode
from tidemark.journal.errors import Unwritable
from tidemark.journal.events import Events


class Append(Struct, frozen=True):
    """Adds events to an entity. The payload stays encoded until the fold decodes it."""

    key: str
    timestamp: int
    """The Kafka record's timestamp in milliseconds. It is part of a row's primary key."""
    first: int
    """The sequence number of the first event."""
    last: int
    """The sequence number of the last event."""
    form: Form
    payload: bytes
    origin: str | None = None
    version: str | None = None
    metadata: str | None = None
    """The header's ``metadata.data`` as canonical JSON text; None where it has none."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The Kafka headers other than ``journal.action``."""


class Mark(Struct, frozen=True):
    """A marker that a reader sends to find the end of its partition. Changes nothing."""

    key: str
    timestamp: int
    id: str
    origin: str | None = None
    version: str | None = None


class Delete(Struct, frozen=True):
    """Deletes the events up to and including sequence number ``to``."""

    key: str
    timestamp: int
    to: int
    origin: str | None = None
    version: str | None = None


class Purge(Struct, frozen=True):
    """Deletes the whole entity. A later append begins a new incarnation."""

    key: str
    timestamp: int
    origin: str | None = None
    version: str | None = None


Action = Append | Mark | Delete | Purge


def append(
    key: str,
    timestamp: int,
    events: Events,
    *,
    origin: str | None = None,
    version: str | None = None,
    metadata: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Append:
    """An append of these events, encoded in the form that kafka-journal's writer would choose.

    Raises Unwritable where there are no events, or where the first sequence number is above the last.
    """
    form, payload = encode(events)
    first, last = events.events[0].seq_nr, events.events[-1].seq_nr
    if first > last:
        raise Unwritable(f"an append from {first} to {last}")
    return Append(key, timestamp, first, last, form, payload, origin, version, metadata, headers or {})
