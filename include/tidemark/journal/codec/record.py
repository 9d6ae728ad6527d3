"""Encoding and decoding of actions as Kafka records. The payload of an append is not decoded here.

The checks have the same order as in kafka-journal, because the order decides which records are ignored and
which are errors. A record without a key, a timestamp or a ``journal.action`` header, with an unknown action,
or an append without a value is not an action. A header that cannot be decoded is ``Undecodable``. Appends of
the usual form take a fast path in msgspec, everything else is checked member by member.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.json import Decoder

from tidemark.journal.action import Action, Append, Delete, Mark, Purge
from tidemark.journal.codec.json_text import (
    LONG_MAX,
    UNUSUAL,
    NeedsCare,
    SeqNr,
    canonical,
    optional_text,
    parse,
    sequence_number,
    shown,
    storable,
)
from tidemark.journal.codec.payload import Form
from tidemark.journal.errors import Undecodable, Unwritable

ACTION_HEADER = "journal.action"
NO_TIMESTAMP = -1
"""Kafka's timestamp type of a record without a timestamp."""

_CESU_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")

_Headers = Sequence[tuple[str, bytes | None]]
_Object = dict[str, object]


class KafkaRecord(NamedTuple):
    """A record for a producer. The caller chooses topic and partition. ``timestamp`` is in milliseconds."""

    key: bytes
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes], ...]


class _Range(Struct, forbid_unknown_fields=True):
    first: SeqNr = field(name="from")
    last: SeqNr = field(name="to")


class _NoMetadata(Struct, forbid_unknown_fields=True):
    pass


class _Body(Struct, forbid_unknown_fields=True, rename="camel"):
    range: _Range
    payload_type: Form
    origin: str | None = None
    version: str | None = None
    metadata: _NoMetadata | None = None


class _AppendHeader(Struct, forbid_unknown_fields=True):
    append: _Body


# The header has only texts and bounded numbers, which msgspec and ``parse`` read alike. Cached, because the
# headers of different entities' appends are often equal. Nothing changes a decoded one.
_read_append = lru_cache(maxsize=4096)(Decoder(_AppendHeader).decode)


def read_action(
    key: bytes | None,
    value: bytes | None,
    timestamp: int | None,
    timestamp_type: int,
    headers: _Headers,
) -> Action | None:
    """The action of a Kafka record; None where the record is not an action.

    ``timestamp`` is in milliseconds, ``timestamp_type`` is Kafka's. Raises Undecodable where the record has
    an action header, or another header of an append, that cannot be decoded.
    """
    if key is None or timestamp is None or timestamp_type == NO_TIMESTAMP:
        return None
    for name, header in headers:
        if name == ACTION_HEADER:
            if header is None:
                raise Undecodable(f"header {ACTION_HEADER} is null")
            break
    else:
        return None
    try:
        body = _read_append(header).append
        if body.range.first > body.range.last:
            raise NeedsCare
    except UNUSUAL:
        return _read_with_care(read_key(key), value, timestamp, header, headers)
    if value is None:
        return None
    return Append(
        read_key(key),
        timestamp,
        body.range.first,
        body.range.last,
        body.payload_type,
        value,
        body.origin,
        body.version,
        None,
        _text_headers(headers) if len(headers) > 1 else {},
    )


def _read_with_care(
    key: str, value: bytes | None, timestamp: int, data: bytes, headers: _Headers
) -> Action | None:
    header = parse(data)
    if type(header) is not dict:
        return None
    body: object
    if type(body := header.get("append")) is dict:
        return _append(key, value, timestamp, body, headers)
    if type(body := header.get("mark")) is dict:
        mark = optional_text(body.get("id"), "mark.id")
        if mark is None:
            raise Undecodable("mark.id is missing")
        return Mark(key, timestamp, mark, *_origin_and_version(body))
    if type(body := header.get("delete")) is dict:
        to = sequence_number(body.get("to"), "delete.to")
        return Delete(key, timestamp, to, *_origin_and_version(body))
    if type(body := header.get("purge")) is dict:
        return Purge(key, timestamp, *_origin_and_version(body))
    return None


def _append(key: str, value: bytes | None, timestamp: int, body: _Object, headers: _Headers) -> Append | None:
    between = body.get("range")
    if type(between) is not dict:
        raise Undecodable(f"append.range must be an object, not {shown(between)}")
    first = sequence_number(between.get("from"), "append.range.from")
    last = sequence_number(between.get("to"), "append.range.to")
    if first > last:
        raise Undecodable(f"append.range goes from {first} to {last}")
    origin, version = _origin_and_version(body)
    form = body.get("payloadType")
    if form != "json" and form != "binary":
        raise Undecodable(f"append.payloadType must be json or binary, not {shown(form)}")
    metadata = body.get("metadata")  # old producers wrote none; anything but an object counts as none
    data = metadata.get("data") if type(metadata) is dict else None
    if value is None:
        return None
    return Append(
        key,
        timestamp,
        first,
        last,
        "json" if form == "json" else "binary",
        value,
        origin,
        version,
        None if data is None else canonical(data),
        _text_headers(headers) if len(headers) > 1 else {},
    )


def _origin_and_version(body: _Object) -> tuple[str | None, str | None]:
    return optional_text(body.get("origin"), "origin"), optional_text(body.get("version"), "version")


def _text_headers(headers: _Headers) -> dict[str, str]:
    """The headers other than ``journal.action`` as text.

    Of several with the same name the last one counts.
    """
    texts = {}
    for name, data in headers:
        if name == ACTION_HEADER:
            continue
        if data is None:
            raise Undecodable(f"header {shown(name)} is null")
        try:
            texts[name] = data.decode()
        except UnicodeDecodeError as error:
            raise Undecodable(f"header {shown(name)} is not UTF-8 at byte {error.start}") from None
    return texts


def read_key(key: bytes) -> str:
    """A key as Java decodes it: malformed UTF-8 becomes U+FFFD, an encoded surrogate a single U+FFFD."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return _CESU_SURROGATE.sub("\ufffd".encode(), key).decode("utf-8", "replace")


def write_action(action: Action) -> KafkaRecord:
    """The Kafka record of an action. The payload of an append is copied as it is.

    Raises Unwritable for an invalid sequence number, and where an append's headers name ``journal.action``.
    """
    match action:
        case Append():
            if ACTION_HEADER in action.headers:
                raise Unwritable(f"{ACTION_HEADER} is not free for a header of one's own")
            if not 1 <= action.first <= action.last <= LONG_MAX:
                raise Unwritable(f"an append from {action.first} to {action.last}")
            metadata = "{}" if action.metadata is None else f'{{"data":{action.metadata}}}'
            members = [
                f'"range":{{"from":{action.first},"to":{action.last}}}',
                *_written_origin_and_version(action),
                f'"payloadType":"{action.form}"',
                f'"metadata":{metadata}',
            ]
            extra = tuple((name, storable(text).encode()) for name, text in action.headers.items())
            return _record(action, "append", members, action.payload, extra)
        case Mark():
            return _record(
                action, "mark", [f'"id":{canonical(action.id)}', *_written_origin_and_version(action)]
            )
        case Delete():
            if not 1 <= action.to <= LONG_MAX:
                raise Unwritable(f"a delete to {action.to}")
            return _record(action, "delete", [f'"to":{action.to}', *_written_origin_and_version(action)])
        case Purge():
            return _record(action, "purge", _written_origin_and_version(action))


def _written_origin_and_version(action: Action) -> list[str]:
    named = (("origin", action.origin), ("version", action.version))
    return [f'"{name}":{canonical(text)}' for name, text in named if text is not None]


def _record(
    action: Action,
    name: str,
    members: list[str],
    value: bytes | None = None,
    extra: tuple[tuple[str, bytes], ...] = (),
) -> KafkaRecord:
    header = f'{{"{name}":{{{",".join(members)}}}}}'.encode()
    key = storable(action.key).encode()
    return KafkaRecord(key, value, action.timestamp, ((ACTION_HEADER, header), *extra))
