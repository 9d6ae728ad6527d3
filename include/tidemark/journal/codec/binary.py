"""The binary payload of an append: writes version 1, reads version 1, version 0 and any other version byte.

Numbers are big-endian, lengths are signed 32-bit numbers of bytes. A length that is negative or points past
its frame is an error; unused bytes at the end of an event are not. Payloads of events are not interpreted.
"""

import struct
from collections.abc import Iterator

from tidemark.journal.codec.json_text import LONG_MAX, canonical_text, parse, storable
from tidemark.journal.errors import Undecodable, Unwritable
from tidemark.journal.events import (
    NO_METADATA,
    EncodedEvent,
    Events,
    PayloadMetadata,
    PayloadType,
    read_metadata,
)

_VERSION_WITH_METADATA = 1

_KINDS: dict[int, PayloadType | None] = {0: None, 1: "binary", 2: "json", 3: "text"}
_KIND_OF: dict[PayloadType | None, int] = {name: kind for kind, name in _KINDS.items()}

_INT = struct.Struct(">i")
_EVENT = struct.Struct(">qi")  # sequence number, length of the tags
_PAYLOAD = struct.Struct(">Bi")  # kind, length of the body


def decode_binary(data: bytes) -> Events:
    """The events of a binary payload. Raises Undecodable where it has none or is malformed.

    kafka-journal tries version 1, then version 0, then version 0 with the first byte skipped. All three have
    the same layout of events, so one pass is enough. The only visible consequence of the fallback is that
    unreadable metadata of version 1 is dropped instead of refused.
    """
    if len(data) < 1 + _INT.size:
        raise Undecodable("binary payload: shorter than its own head")
    (count,) = _INT.unpack_from(data, 1)
    if count < 1:
        raise Undecodable(f"binary payload: {count} events")
    events = []
    position = 1 + _INT.size
    for _ in range(count):
        frame, position = _sized(data, position, "event")
        events.append(_event(frame))
    if data[0] != _VERSION_WITH_METADATA:
        return Events(tuple(events))
    try:
        metadata = _metadata(data[position:])
    except Undecodable:
        return Events(tuple(events), metadata_dropped=True)
    return Events(tuple(events), metadata)


def _metadata(data: bytes) -> PayloadMetadata:
    if data == b"{}":
        return NO_METADATA
    value = parse(data)
    if value is None:
        raise Undecodable("metadata must be an object, not null")
    return read_metadata(value)


def _sized(data: bytes, position: int, what: str) -> tuple[bytes, int]:
    """The frame whose length is at ``position``, and the position after it."""
    start = position + _INT.size
    if start > len(data):
        raise Undecodable(f"binary payload: no {what} at byte {position}")
    (size,) = _INT.unpack_from(data, position)
    end = start + size
    if size < 0 or end > len(data):
        raise Undecodable(f"binary payload: {what} of {size} bytes at byte {position}")
    return data[start:end], end


def _event(frame: bytes) -> EncodedEvent:
    if len(frame) < _EVENT.size:
        raise Undecodable(f"binary payload: event of {len(frame)} bytes")
    (seq_nr, _) = _EVENT.unpack_from(frame)
    if seq_nr < 1:
        raise Undecodable(f"binary payload: sequence number {seq_nr}")
    tags, position = _sized(frame, _EVENT.size - _INT.size, "tags")
    start = position + _PAYLOAD.size
    if start > len(frame):
        raise Undecodable(f"binary payload: event {seq_nr} ends before its payload")
    kind, _ = _PAYLOAD.unpack_from(frame, position)
    if kind not in _KINDS:
        raise Undecodable(f"binary payload: unknown kind {kind} in event {seq_nr}")
    body, _ = _sized(frame, start - _INT.size, "body")
    return EncodedEvent(seq_nr, tuple(dict.fromkeys(_tags(tags))), *_payload(_KINDS[kind], body))


def _tags(block: bytes) -> Iterator[str]:
    position = 0
    while position < len(block):
        tag, position = _sized(block, position, "tag")
        yield _text(tag)


def _payload(kind: PayloadType | None, body: bytes) -> tuple[PayloadType | None, str | bytes | None]:
    if kind is None:
        return None, None
    if kind == "binary":
        return kind, body
    return kind, canonical_text(body) if kind == "json" else _text(body)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"binary payload: text is not UTF-8 at byte {error.start}") from None


def encode_binary(events: Events) -> bytes:
    """Encodes events and their metadata as version 1. Raises Unwritable for an invalid sequence number."""
    frames = b"".join(_prefixed(_encode_event(event)) for event in events.events)
    head = bytes((_VERSION_WITH_METADATA,)) + _INT.pack(len(events.events))
    return head + frames + events.metadata.text.encode()


def _prefixed(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _encode_event(event: EncodedEvent) -> bytes:
    if not 1 <= event.seq_nr <= LONG_MAX:
        raise Unwritable(f"sequence number {event.seq_nr}")
    tags = b"".join(_prefixed(storable(tag).encode()) for tag in event.tags)
    payload = event.payload if event.payload is not None else b""
    body = storable(payload).encode() if isinstance(payload, str) else payload
    head = _EVENT.pack(event.seq_nr, len(tags)) + tags
    return head + _PAYLOAD.pack(_KIND_OF[event.payload_type], len(body)) + body
