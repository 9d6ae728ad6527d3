"""The binary payload (contract 2.1)."""

import struct

import pytest

from tidemark.journal.codec.binary import decode_binary, encode_binary
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.errors import Undecodable, Unwritable
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata

pytestmark = pytest.mark.unit

SAMPLE = bytes.fromhex(
    "01"  # version 1
    "00000001"  # 1 event
    "0000001f"  # of 31 bytes
    "0000000000000001"  # sequence number 1
    "0000000a"  # tags of 10 bytes
    "0000000130"
    "0000000131"
    "0300000004" + b"text".hex() + "7b7d"  # metadata {}
)


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def an_event(seq_nr: int = 1, tags: bytes = b"", kind: int = 3, body: bytes = b"a") -> bytes:
    return struct.pack(">q", seq_nr) + sized(tags) + bytes((kind,)) + sized(body)


def payload(*events: bytes, version: int = 1, metadata: bytes = b"{}", count: int | None = None) -> bytes:
    number = len(events) if count is None else count
    return bytes((version,)) + struct.pack(">i", number) + b"".join(map(sized, events)) + metadata


def test_2_1_the_sample_of_the_contract_both_ways() -> None:
    events = Events((EncodedEvent(1, ("0", "1"), "text", "text"),))
    assert decode_binary(SAMPLE) == events
    assert encode_binary(events) == SAMPLE


@pytest.mark.parametrize(
    ("kind", "body", "event"),
    [
        (0, b"", EncodedEvent(1)),
        (0, b"ignored", EncodedEvent(1)),
        (1, b"\x00\xff", EncodedEvent(1, (), "binary", b"\x00\xff")),
        (2, b' { "a" : 1.0 } ', EncodedEvent(1, (), "json", '{"a":1}')),
        (2, b"null", EncodedEvent(1, (), "json", "null")),
        (3, "é".encode(), EncodedEvent(1, (), "text", "é")),
    ],
)
def test_2_1_kinds_of_payload(kind: int, body: bytes, event: EncodedEvent) -> None:
    assert decode_binary(payload(an_event(kind=kind, body=body))).events == (event,)


def test_2_1_tags_are_a_set() -> None:
    tags = sized(b"b") + sized(b"a") + sized(b"b")
    assert decode_binary(payload(an_event(tags=tags))).events[0].tags == ("b", "a")


def test_2_1_version_1_has_metadata() -> None:
    found = decode_binary(payload(an_event(), metadata=b'{"expireAfter":"60 s","data":{"a":1.0},"x":1}'))
    assert found.metadata == PayloadMetadata(ExpireAfter(60, "second"), '{"a":1}')
    assert not found.metadata_dropped


@pytest.mark.parametrize("version", [0, 2, 255])
def test_2_1_other_versions_have_none_and_what_follows_is_ignored(version: int) -> None:
    found = decode_binary(payload(an_event(), version=version, metadata=b'{"expireAfter":"1 day"} or not'))
    assert found == Events((EncodedEvent(1, (), "text", "a"),))


@pytest.mark.parametrize(
    "metadata", [b"", b"{", b"null", b"[]", b"1", b'{"expireAfter":"1 year"}', b'{"expireAfter":[]}', b"\xff"]
)
def test_2_1_unreadable_metadata_of_version_1_is_dropped_and_said_so(metadata: bytes) -> None:
    found = decode_binary(payload(an_event(), metadata=metadata))
    assert found == Events((EncodedEvent(1, (), "text", "a"),), metadata_dropped=True)


def test_2_1_bytes_left_over_inside_an_event_are_ignored() -> None:
    assert decode_binary(payload(an_event() + b"more")).events == (EncodedEvent(1, (), "text", "a"),)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\x01\x00\x00",
        payload(count=0, metadata=b""),
        payload(an_event(), count=-1),
        payload(an_event(), count=2, metadata=b""),
        payload(an_event(seq_nr=0)),
        payload(an_event(seq_nr=-5)),
        payload(an_event(kind=4)),
        payload(an_event(kind=3, body=b"\xff")),
        payload(an_event(kind=2, body=b"{")),
        payload(an_event(kind=2, body=b"")),
        payload(an_event(tags=sized(b"\xff"))),
        payload(an_event(tags=sized(b"a") + b"\x00")),
        payload(an_event(tags=struct.pack(">i", -1))),
        payload(an_event()[:6]),
        payload(an_event()[:14]),
        payload(an_event()[:-1]),
        b"\x01\x00\x00\x00\x01" + struct.pack(">i", -1),
        b"\x01\x00\x00\x00\x01" + struct.pack(">i", 1000) + an_event(),
    ],
)
def test_2_1_refused(data: bytes) -> None:
    with pytest.raises(Undecodable):
        decode_binary(data)


def test_2_1_a_sequence_number_that_could_not_be_read_is_not_written() -> None:
    with pytest.raises(Unwritable):
        encode_binary(Events((EncodedEvent(0),)))
