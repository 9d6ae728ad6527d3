"""The numbers of a payload's events, read without the events: the same, and refused when they are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.journal.codec.payload import decode, sequence_numbers
from tidemark.journal.errors import Undecodable

pytestmark = pytest.mark.unit

EVENTS = [
    b'{"seqNr":1,"tags":[]}',
    b'{"seqNr":2,"tags":["a","a"],"payloadType":"json","payload":{"a":[1,2.50,1e3]}}',
    b'{"seqNr":3,"tags":[],"payloadType":"text","payload":"text"}',
    b'{"seqNr":3,"tags":[],"payloadType":"text","payload":null}',
    b'{"seqNr":4,"tags":[],"payloadType":"text","payload":7}',
    b'{"seqNr":0,"tags":[]}',
    b'{"seqNr":5}',
    b'{"seqNr":5,"tags":[],"payload":123456789012345678901234567890}',
    b'{"seqNr":5,"tags":[],"payload":1e99999}',
    b'{"seqNr":5,"tags":[],"payload":"\xff"}',
    b'{"seqNr":5,"tags":[],"payload":"\\ud800"}',
    b'{"seqNr":6,"tags":[],"payload":' + b"[" * 250 + b"]" * 250 + b"}",
    b'{"seqNr":6,"tags":[],"payload":' + b"[" * 300 + b"]" * 300 + b"}",
    b'{"seqNr":6,"tags":[],"more":1}',
]
METADATA = [
    b"",
    b',"metadata":null',
    b',"metadata":{"expireAfter":"1 day"}',
    b',"metadata":{"expireAfter":"soon"}',
]


def read(function, *arguments):
    try:
        return function(*arguments)
    except Undecodable as error:
        return str(error)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(EVENTS), max_size=3),
    st.sampled_from(METADATA),
    st.sampled_from([b"", b" ", b"x"]),
)
def test_numbers_are_those_of_the_events(events, metadata, behind):
    data = b'{"events":[' + b",".join(events) + b"]" + metadata + b"}" + behind
    decoded = read(decode, "json", data)
    expected = decoded if isinstance(decoded, str) else [event.seq_nr for event in decoded.events]
    assert read(sequence_numbers, "json", data) == expected


def test_numbers_of_what_is_no_json_are_refused():
    with pytest.raises(Undecodable):
        sequence_numbers("json", b"broken")
    with pytest.raises(Undecodable):
        sequence_numbers("binary", b"\x00\x01broken")
