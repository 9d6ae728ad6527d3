"""Encoding and decoding of the JSON payload of an append.

kafka-journal has two JSON writers: one omits absent members, the other writes them as null. Both forms are
read, the first is written. An event's JSON payload of null is read as no payload. Documents of the usual form
take a fast path in msgspec. All others are checked member by member, and only that slow path refuses.
"""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Raw, Struct
from msgspec.json import Decoder

from tidemark.journal.codec.expire_after import read_expire_after
from tidemark.journal.codec.json_text import (
    LONG_MAX,
    UNUSUAL,
    NeedsCare,
    SeqNr,
    canonical,
    parse,
    quick_reader,
    quick_text,
    sequence_number,
    shown,
    storable,
)
from tidemark.journal.errors import Undecodable, Unwritable
from tidemark.journal.events import NO_METADATA, EncodedEvent, Events, PayloadMetadata, read_metadata

SHALLOW = 200
"""The depth of a document with at most this many opening brackets is not checked: it cannot be too deep."""
NOTABLE_NUMBER = r"[:,\[ \t\n\r]-?(?:[0-9.]{20}|[0-9.]+[eE])"
"""A regular expression that matches every number of 20 digits or more or with an exponent, and some texts
that look like one. Every other number can be stored without loss."""


class _Event(Struct, forbid_unknown_fields=True, rename="camel"):
    seq_nr: SeqNr
    tags: tuple[str, ...]
    payload_type: Literal["json", "text"] | None = None
    payload: Any = None


class _Metadata(Struct, forbid_unknown_fields=True, rename="camel"):
    expire_after: str | None = None
    data: Any = None


class _Document(Struct, forbid_unknown_fields=True):
    events: list[_Event]
    metadata: _Metadata | None = None


class _Outline(Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    seq_nr: SeqNr
    tags: tuple[str, ...]
    payload_type: Literal["json", "text"] | None = None
    payload: Raw = Raw(b"null")


class _OutlinedDocument(Struct, forbid_unknown_fields=True, gc=False):
    events: list[_Outline]
    metadata: _Metadata | None = None


_read_document: Callable[[bytes], _Document] = quick_reader(_Document)
_read_outline = Decoder(_OutlinedDocument).decode


def decode_json(data: bytes) -> Events:
    """The events of a JSON payload. Raises Undecodable where it has none or is malformed."""
    try:
        document = _read_document(data)
        if document.events:
            return Events(
                tuple([_quick_event(event) for event in document.events]), _quick_metadata(document.metadata)
            )
    except UNUSUAL:
        pass
    return _decode_with_care(data)


def json_sequence_numbers(data: bytes) -> list[int]:
    """The sequence numbers of a JSON payload's events.

    Refuses what ``decode_json`` refuses, and is faster.
    """
    try:
        document = _read_document(data)
        if document.events and data.count(b"{") + data.count(b"[") <= SHALLOW:
            _quick_metadata(document.metadata)
            if all(event.payload_type != "text" or _is_text(event.payload) for event in document.events):
                return [event.seq_nr for event in document.events]
    except UNUSUAL:
        pass
    return [event.seq_nr for event in decode_json(data).events]


def outlined_sequence_numbers(data: bytes) -> list[int] | None:
    """The sequence numbers, without decoding the events' payloads; None where they have to be decoded.

    msgspec checks only the grammar of what it skips. The caller must therefore have checked that ``data`` is
    UTF-8 and has no ``NOTABLE_NUMBER``, which is cheap for many payloads at once.
    """
    try:
        document = _read_outline(data)
        metadata = document.metadata
        if metadata is not None and metadata.expire_after is not None:
            read_expire_after(metadata.expire_after)
        if metadata is not None and metadata.data is not None:
            return None
        # Every level of nesting takes two bytes, so a shorter document needs no count.
        if len(data) > 2 * SHALLOW and data.count(b"{") + data.count(b"[") > SHALLOW:
            return None
        numbers = []
        for event in document.events:
            if event.payload_type == "text" and bytes(event.payload)[:1] not in b'"n':
                return None
            numbers.append(event.seq_nr)
        return numbers or None
    except UNUSUAL:
        return None


def _is_text(payload: object) -> bool:
    return payload is None or type(payload) is str


def _quick_event(event: _Event) -> EncodedEvent:
    tags, payload = event.tags, event.payload
    if len(tags) > 1:
        tags = tuple(dict.fromkeys(tags))
    if payload is None:
        return EncodedEvent(event.seq_nr, tags)
    if event.payload_type != "text":
        return EncodedEvent(event.seq_nr, tags, "json", quick_text(payload))
    if type(payload) is not str:
        raise NeedsCare
    return EncodedEvent(event.seq_nr, tags, "text", payload)


def _quick_metadata(found: _Metadata | None) -> PayloadMetadata:
    if found is None or (found.expire_after is None and found.data is None):
        return NO_METADATA
    return PayloadMetadata(
        None if found.expire_after is None else read_expire_after(found.expire_after),
        None if found.data is None else quick_text(found.data),
    )


def _decode_with_care(data: bytes) -> Events:
    document = parse(data)
    if type(document) is not dict:
        raise Undecodable(f"JSON payload: must be an object, not {shown(document)}")
    items = document.get("events")
    if type(items) is not list or not items:
        raise Undecodable(f"JSON payload: events must be an array with something in it, not {shown(items)}")
    return Events(tuple([_event(item) for item in items]), read_metadata(document.get("metadata")))


def _event(item: object) -> EncodedEvent:
    if type(item) is not dict:
        raise Undecodable(f"JSON payload: an event must be an object, not {shown(item)}")
    seq_nr = sequence_number(item.get("seqNr"), "seqNr")
    tags = _tags(item.get("tags"))
    payload_type = item.get("payloadType")
    payload = item.get("payload")
    if payload_type == "json" or payload_type is None:
        if payload is None:
            return EncodedEvent(seq_nr, tags)
        return EncodedEvent(seq_nr, tags, "json", canonical(payload))
    if payload_type != "text":
        raise Undecodable(f"JSON payload: payloadType must be json or text, not {shown(payload_type)}")
    if payload is None:
        return EncodedEvent(seq_nr, tags)
    if type(payload) is not str:
        raise Undecodable(f"JSON payload: a text payload must be text, not {shown(payload)}")
    return EncodedEvent(seq_nr, tags, "text", storable(payload))


def _tags(value: object) -> tuple[str, ...]:
    if type(value) is not list:
        raise Undecodable(f"JSON payload: tags must be an array, not {shown(value)}")
    for tag in value:
        if type(tag) is not str:
            raise Undecodable(f"JSON payload: a tag must be text, not {shown(tag)}")
    if len(value) > 1:
        value = dict.fromkeys(value)
    return tuple([tag if tag.isascii() else storable(tag) for tag in value])


def encode_json(events: Events) -> bytes:
    """Encodes events as compact JSON, members in kafka-journal's order.

    Raises Unwritable for an invalid sequence number or a binary payload.
    """
    items = ",".join(map(_encode_event, events.events))
    return f'{{"events":[{items}],"metadata":{events.metadata.text}}}'.encode()


def _encode_event(event: EncodedEvent) -> str:
    if not 1 <= event.seq_nr <= LONG_MAX:
        raise Unwritable(f"sequence number {event.seq_nr}")
    text = f'{{"seqNr":{event.seq_nr},"tags":{canonical(list(event.tags))}'
    if event.payload_type is None:
        return text + "}"
    if not isinstance(event.payload, str):
        raise Unwritable(
            f"a JSON payload cannot carry the {event.payload_type} payload of event {event.seq_nr}"
        )
    payload = event.payload if event.payload_type == "json" else canonical(event.payload)
    return f'{text},"payloadType":"{event.payload_type}","payload":{payload}}}'
