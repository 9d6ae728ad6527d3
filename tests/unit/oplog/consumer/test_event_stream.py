"""R12, R13: server-sent events by the standard, cut anywhere, bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.oplog.consumer.errors import StreamGarbled
from tidemark.oplog.consumer.event_stream import MOST_BYTES, Block, EventStreamParser

pytestmark = pytest.mark.unit


def parsed(*chunks: bytes) -> list[Block]:
    parser = EventStreamParser()
    return [block for chunk in chunks for block in parser.feed(chunk)]


def test_R13_a_block_has_id_event_and_data():
    assert parsed(b"id: a\nevent: insert\ndata: {}\n\n") == [Block(b"insert", b"{}", b"a", None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"data: a\ndata: b\n\n", Block(b"", b"a\nb", None, None)),
        (b"data:a\n\n", Block(b"", b"a", None, None)),
        (b"data:  a\n\n", Block(b"", b" a", None, None)),
        (b"data\n\n", Block(b"", b"", None, None)),
        (b"event: live\n\n", Block(b"live", None, None, None)),
        (b"id: 7\n\n", Block(b"", None, b"7", None)),
        (b"id\nevent: x\n\n", Block(b"x", None, b"", None)),
        (b"retry: 250\n\n", Block(b"", None, None, 250)),
        (b"\xef\xbb\xbfdata: a\n\n", Block(b"", b"a", None, None)),
        (b": comment\ndata: a\nunknown: b\n\n", Block(b"", b"a", None, None)),
        ("data: é\u2028x\n\n".encode(), Block(b"", "é\u2028x".encode(), None, None)),
    ],
)
def test_R12_fields_by_the_standard(text, expected):
    assert parsed(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        b": heartbeat\n\n",
        b"\n\n\n",
        b"retry: soon\n\n",
        b"retry: 1234567890123456789\n\n",
        b"data: not complete\n",
    ],
)
def test_what_is_no_block(text):
    assert parsed(text) == []


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_R12_lines_end_in_any_of_three_ways(end):
    text = end.join([b"id: 1", b"event: a", b"", b"id: 2", b"event: b", b"", b""])
    assert [block.id for block in parsed(text)] == [b"1", b"2"]


SOME = st.sampled_from([b"id: 1", b"event: insert", b'data: {"a":1}', b"", b"", b":", b"retry: 5", b"x"])
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(st.lists(st.tuples(SOME, ENDS), max_size=30), st.lists(st.integers(0, 300), max_size=12))
def test_a_stream_is_the_same_wherever_it_is_cut(lines, cuts):
    text = b"".join(line + end for line, end in lines)
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[one:other] for one, other in zip([0, *places], [*places, len(text)], strict=True)]
    assert parsed(*pieces) == parsed(text)


@pytest.mark.parametrize("chunk", [b"x" * 65_536, b"data: " + b"x" * 65_530 + b"\n"], ids=["line", "block"])
def test_a_line_or_block_without_end_is_refused(chunk):
    with pytest.raises(StreamGarbled):
        parsed(*[chunk] * (MOST_BYTES // 65_530 + 2))


def test_what_came_before_a_line_without_end_is_handed_on():
    parser = EventStreamParser()
    blocks = parser.feed(b"id: 1\n\n" + b"x" * 10)
    assert next(blocks).id == b"1"
