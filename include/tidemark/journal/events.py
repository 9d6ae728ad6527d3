"""The events of one append: the output of the codecs' readers and the input of their writers.

JSON is held as canonical text (``codec.json_text``), which is what the tables store. Nothing parses it here.
"""

from typing import Literal, NamedTuple

from msgspec import Struct

from tidemark.journal.codec.expire_after import ExpireAfter, read_expire_after
from tidemark.journal.codec.json_text import canonical, shown
from tidemark.journal.errors import Undecodable

PayloadType = Literal["json", "text", "binary"]


class EncodedEvent(NamedTuple):
    """One event. The payload is text for ``json`` (canonical) and ``text``, bytes for ``binary``, or None."""

    seq_nr: int
    tags: tuple[str, ...] = ()
    payload_type: PayloadType | None = None
    payload: str | bytes | None = None


class PayloadMetadata(Struct, frozen=True):
    """The metadata in an append's payload; ``data`` is canonical JSON text."""

    expire_after: ExpireAfter | None = None
    data: str | None = None

    @property
    def text(self) -> str:
        """The metadata as a JSON object, without the members that are None."""
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
    """The payload's metadata was unreadable and is treated as empty, as in kafka-journal. Callers log it."""


def read_metadata(value: object) -> PayloadMetadata:
    """Payload metadata from its JSON value. Null members count as missing, unknown members are ignored.

    Raises Undecodable where the value is neither null nor an object, or ``expireAfter`` is not a duration.
    """
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
    """The ``metadata`` column of a row: one JSON object with the header's and the payload's metadata."""
    if header_data is None and payload is NO_METADATA:
        return _NO_RECORD_METADATA
    header = "{}" if header_data is None else f'{{"data":{header_data}}}'
    return f'{{"header":{header},"payload":{payload.text}}}'
