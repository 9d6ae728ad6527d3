"""The quick ways of reading against the careful one: the same value, or the same error, for any bytes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from tests.support.json_texts import damaged, documents, headers, metadata, values

from tidemark.journal.action import Append
from tidemark.journal.codec import json_payload, json_text, record
from tidemark.journal.codec.binary import decode_binary
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.codec.json_payload import decode_json
from tidemark.journal.codec.json_text import NeedsCare, canonical, canonical_text, parse
from tidemark.journal.codec.record import read_action
from tidemark.journal.errors import JournalError
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata

pytestmark = pytest.mark.unit


@contextmanager
def only_careful() -> Iterator[None]:
    """As if nothing could ever be read quickly."""
    with (
        patch.object(json_text, "_quick", side_effect=NeedsCare),
        patch.object(json_payload, "_read_document", side_effect=NeedsCare),
        patch.object(record, "_read_append", side_effect=NeedsCare),
    ):
        yield


@contextmanager
def only_quick() -> Iterator[None]:
    """As if there were no care to fall back on."""
    with patch.object(json_payload, "parse", None), patch.object(record, "parse", None):
        yield


def outcome(read: Callable[[bytes], Any], data: bytes) -> tuple[str, Any]:
    try:
        return "value", read(data)
    except JournalError as error:
        return type(error).__name__, str(error)


def written(data: bytes) -> str:
    return canonical(parse(data))


def read_header(data: bytes) -> object:
    return read_action(b"id", b"v", 7, 0, [("journal.action", data)])


def binary_metadata(data: bytes) -> Events:
    event = bytes.fromhex("0000000000000001 00000000 03 00000001 61")
    return decode_binary(b"\x01\x00\x00\x00\x01" + len(event).to_bytes(4, "big") + event + data)


def agree(read: Callable[[bytes], Any], data: bytes) -> bool:
    quick = outcome(read, data)
    with only_careful():
        return quick == outcome(read, data)


@given(damaged(values))
@settings(max_examples=150, deadline=None)
def test_any_document_means_the_same_both_ways(data: bytes) -> None:
    assert agree(written, data)
    assert agree(canonical_text, data)
    assert outcome(written, data) == outcome(canonical_text, data)


@given(damaged(documents))
@settings(max_examples=150, deadline=None)
def test_2_2_any_payload_means_the_same_both_ways(data: bytes) -> None:
    assert agree(decode_json, data)


@given(damaged(headers))
@settings(max_examples=150, deadline=None)
def test_1_1_any_header_means_the_same_both_ways(data: bytes) -> None:
    assert agree(read_header, data)


@given(damaged(metadata))
@settings(max_examples=80, deadline=None)
def test_2_1_any_metadata_of_a_binary_payload_means_the_same_both_ways(data: bytes) -> None:
    assert agree(binary_metadata, data)


EVENT = '{"events":[{"seqNr":1,"tags":[],"payload":%s}]}'


@pytest.mark.parametrize(
    "payload",
    [
        # What msgspec would have taken, had it been asked: a number that is gone again is one all the same.
        f'{"1" * 310},"payload":1',
        f'{{"a":{"1" * 310},"a":1}}',
        '{"a":1e6178,"a":1}',
        f"[ {'1' * 20} ]",
        f"[-{'1' * 20}]",
        f"[1,\t-{'1' * 400}]",
        "1" * 4300,
        # What msgspec would skip.
        '1,"more":1e6178',
        '1,"more":"\udcff"',
        # What looks like such a number is only text.
        f'"{"1" * 400}"',
        f'["CZ{"1" * 22}",":{"1" * 22}"]',
        # As deep as we go, and one further; what is gone again is not deep.
        "[" * 253 + "]" * 253,
        "[" * 254 + "]" * 254,
        f'{"[" * 300 + "]" * 300},"payload":1',
        f"[{'[],' * 300}1]",
    ],
)
def test_2_2_where_the_two_ways_could_part(payload: str) -> None:
    assert agree(decode_json, (EVENT % payload).encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("document", "events"),
    [
        (
            '{"events":[{"seqNr":7,"tags":[],"payloadType":"json","payload":{"a":"é","b":[1,1.50,1e30,0.1]}}],'
            '"metadata":{}}',
            Events((EncodedEvent(7, (), "json", '{"a":"é","b":[1,1.5,1E+30,0.1]}'),)),
        ),
        (
            ' { "events" : [ { "tags" : [ "b" , "a" , "b" ] , "seqNr" : 1 , "payload" : "\\u007f" } ] } ',
            Events((EncodedEvent(1, ("b", "a"), "json", r'"\u007f"'),)),
        ),
        (
            '{"events":[{"seqNr":1,"tags":[],"payloadType":"text","payload":"é"},{"seqNr":2,"tags":[]}],'
            '"metadata":{"expireAfter":"60 s","data":{"a":1.0}}}',
            Events(
                (EncodedEvent(1, (), "text", "é"), EncodedEvent(2)),
                PayloadMetadata(ExpireAfter(60, "second"), '{"a":1}'),
            ),
        ),
    ],
)
def test_2_2_what_a_writer_writes_needs_no_care(document: str, events: Events) -> None:
    with only_quick():
        assert decode_json(document.encode()) == events


@pytest.mark.parametrize(
    ("header", "action"),
    [
        (
            b'{"append":{"range":{"from":7,"to":9},"origin":"h","version":"1.0","payloadType":"json",'
            b'"metadata":{}}}',
            Append("id", 7, 7, 9, "json", b"v", "h", "1.0"),
        ),
        (
            b'{"append":{"range":{"from":1,"to":1},"payloadType":"binary"}}',
            Append("id", 7, 1, 1, "binary", b"v"),
        ),
    ],
)
def test_1_1_an_append_as_it_is_written_needs_no_care(header: bytes, action: Append) -> None:
    with only_quick():
        assert read_header(header) == action
