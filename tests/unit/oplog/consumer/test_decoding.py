"""What the blocks of a stream say, and which of them are refused."""

from datetime import UTC, datetime

import pytest

from tidemark.oplog.consumer import decoding
from tidemark.oplog.consumer.decoding import LONGEST_ID, Opened, Said, event_id, meaning
from tidemark.oplog.consumer.errors import StreamGarbled
from tidemark.oplog.consumer.event_stream import Block
from tidemark.oplog.consumer.items import OpLogEvent

pytestmark = pytest.mark.unit

DATA = b'{"timestamp":"2014-11-06T03:04:39.041-08:00","parents":["user/1"],"type":"video","id":"x"}'


def given_block(event: bytes, data: bytes | None = b"{}", event_id: bytes | None = b"o1.1") -> Block:
    return Block(event, data, event_id, None)


def test_R14_data_has_timestamp_parents_type_and_id():
    assert meaning(given_block(b"update", DATA)) == Said(
        OpLogEvent.UPDATE, datetime(2014, 11, 6, 11, 4, 39, 41_000, UTC), ("user/1",), "video", "x", None
    )


def test_C25_ref_is_handed_on():
    said = meaning(given_block(b"insert", DATA[:-1] + b',"ref":"http://host/video/x"}'))
    assert isinstance(said, Said)
    assert said.ref == "http://host/video/x"


def test_parents_of_the_original_may_be_null():
    said = meaning(given_block(b"insert", DATA.replace(b'["user/1"]', b"null")))
    assert isinstance(said, Said)
    assert said.parents == ()


@pytest.mark.parametrize("data", [None, b"", b"{}"])
@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (b"reset", decoding.Reset),
        (b"live", decoding.Live),
        (b"slow", decoding.Slow),
        (b"checkpoint", decoding.Passed),
    ],
)
def test_C23_marks_need_no_data(event, kind, data):
    assert isinstance(meaning(given_block(event, data)), kind)


def test_the_mode_of_a_stream():
    assert meaning(given_block(b"open", b'{"mode":"exact","more":1}')) == Opened("exact")


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"{}",
        b"[]",
        b"no json",
        DATA[:-1],
        b"\xff" + DATA,
        DATA.replace(b"-08:00", b""),
        DATA.replace(b'"x"', b"7"),
        DATA.replace(b'"x"', b'""'),
        DATA.replace(b'"video"', b"null"),
        DATA.replace(b'["user/1"]', b"[1]"),
        b"[" * 100_000,
    ],
)
def test_data_that_is_no_operation_is_refused(data):
    with pytest.raises(StreamGarbled):
        meaning(given_block(b"insert", data))


def test_an_unknown_event_that_moves_the_position_is_refused():
    with pytest.raises(StreamGarbled, match="create"):
        meaning(given_block(b"create", DATA))


def test_an_unknown_event_without_an_id_is_ignored():
    assert isinstance(meaning(given_block(b"notice", b"text", None)), decoding.Passed)


@pytest.mark.parametrize("found", [b"", b"a b", b"a\x00", "é".encode(), b"x" * (LONGEST_ID + 1)])
def test_an_id_that_no_header_can_have_is_refused(found):
    with pytest.raises(StreamGarbled):
        event_id(given_block(b"insert", DATA, found))


def test_messages_show_no_control_characters():
    with pytest.raises(StreamGarbled) as refused:
        meaning(given_block(b"insert", b"\x1b[31m\x07" + b"x" * 500))
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 300
