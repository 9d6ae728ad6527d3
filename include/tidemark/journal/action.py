"""Actions: what a kafka-journal message says. Their Kafka form is in ``record``, their effect in ``fold``.

They are msgspec's structs because one is made for every message: a frozen dataclass takes many times as long.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from tidemark.journal.codec.payload import Form, encode
from tidemark.journal.errors import Unwritable
from tidemark.journal.events import Events


class Append(Struct, frozen=True):
    """Events were added to an entity. The payload stays encoded until the fold needs it."""

    key: str
    timestamp: int
    """Kafka's, in milliseconds; part of a row's primary key."""
    first: int
    last: int
    form: Form
    payload: bytes
    origin: str | None = None
    version: str | None = None
    metadata: str | None = None
    """The header's own ``metadata.data``, as canonical JSON text."""
    headers: Mapping[str, str] = field(default_factory=dict)


class Mark(Struct, frozen=True):
    """A reader's sign that it has been here. Changes nothing."""

    key: str
    timestamp: int
    id: str
    origin: str | None = None
    version: str | None = None


class Delete(Struct, frozen=True):
    """Events up to and including ``to`` are no longer wanted; later ones are not touched."""

    key: str
    timestamp: int
    to: int
    origin: str | None = None
    version: str | None = None


class Purge(Struct, frozen=True):
    """Nothing of the entity is wanted any more. An append after it begins a new incarnation."""

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
    """An append of these events, in the form the original's writer would choose."""
    form, payload = encode(events)
    first, last = events.events[0].seq_nr, events.events[-1].seq_nr
    if first > last:
        raise Unwritable(f"an append from {first} to {last}")
    return Append(key, timestamp, first, last, form, payload, origin, version, metadata, headers or {})
