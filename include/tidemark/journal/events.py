"""The events of one append, as a codec read them or is to write them.

JSON is held as its canonical text (``jsontext``), because that is what the tables hold; nobody here looks
inside it.
"""

from typing import Literal, NamedTuple

from msgspec import Struct

from tidemark.journal.codec.expire_after import ExpireAfter, read_expire_after
from tidemark.journal.codec.json_text import canonical, shown
from tidemark.journal.errors import Undecodable

PayloadType = Literal["json", "text", "binary"]


class EncodedEvent(NamedTuple):
    """One event: payload is text for ``json`` (canonical) and ``text``, bytes for ``binary``, or None."""

    seq_nr: int
    tags: tuple[str, ...] = ()
    payload_type: PayloadType | None = None
    payload: str | bytes | None = None


class PayloadMetadata(Struct, frozen=True):
    """What an append's payload says about itself; ``data`` is canonical JSON text."""

    expire_after: ExpireAfter | None = None
    data: str | None = None

    @property
    def text(self) -> str:
        """Its JSON object: absent members are left out."""
        members = []
        if self.expire_after is not None:
            members.append(f'"expireAfter":"{self.expire_after.text}"')
        if self.data is not None:
            members.append(f'"data":{self.data}')
        return "{" + ",".join(members) + "}"


NO_METADATA = PayloadMetadata()


class Events(Struct, frozen=True):
    """All events of one append, at least one, in order."""

    events: tuple[EncodedEvent, ...]
    metadata: PayloadMetadata = NO_METADATA
    metadata_dropped: bool = False
    """The record's metadata was unreadable and, as in the original, taken for empty. Worth a log line."""


def read_metadata(value: object) -> PayloadMetadata:
    """PayloadMetadata from its JSON value; a missing or null member is absent, an unknown one is ignored."""
    if value is None or value == {}:
        return NO_METADATA
    if not isinstance(value, dict):
        raise Undecodable(f"metadata must be an object, not {shown(value)}")
    expire_after, data = value.get("expireAfter"), value.get("data")
    return PayloadMetadata(
        None if expire_after is None else read_expire_after(expire_after),
        None if data is None else canonical(data),
    )


_NO_RECORD_METADATA = '{"header":{},"payload":{}}'


def record_metadata(header_data: str | None, payload: PayloadMetadata) -> str:
    """The ``metadata`` column of a row: what the action's header and the payload carried, in one object."""
    if header_data is None and payload is NO_METADATA:
        return _NO_RECORD_METADATA
    header = "{}" if header_data is None else f'{{"data":{header_data}}}'
    return f'{{"header":{header},"payload":{payload.text}}}'
