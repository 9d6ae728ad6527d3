"""Accept headers, content types and queries."""

import pytest

from tidemark.oplog.agent.server.headers import (
    NDJSON,
    SSE,
    BadQuery,
    media_type,
    names,
    quality,
    read_query,
    stream_type,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        *(
            (None, SSE),
            ("", SSE),
            ("*/*", SSE),
            ("text/event-stream", SSE),
            (" TEXT/event-Stream ; a", SSE),
        ),
        *((NDJSON, NDJSON), (f"{NDJSON}, */*;q=0.1", NDJSON), (f"{NDJSON}, {SSE}", SSE)),
        *(("application/*", NDJSON), (f"{SSE};q=0, */*", NDJSON), ("text/html", None), ("a;q=x", None)),
        *((f"{SSE};q=x", None), (f"{SSE};q=nan", None), (f"{SSE};q=-1", None), (",;,", None)),
    ],
)
def test_c7_which_stream_a_header_asks_for(accept, expected):
    assert stream_type(accept) == expected


def test_the_most_specific_range_counts():
    assert quality("text/event-stream;q=0.2, text/*;q=0.9, */*", SSE) == 0.2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("application/json", ("application/json", None)),
        ('Application/JSON ; charset="UTF-8"', ("application/json", "utf-8")),
        (None, ("", None)),
    ],
)
def test_c6_content_types(text, expected):
    assert media_type(text) == expected


def test_a_query_has_all_values_of_a_parameter():
    assert read_query(b"a=1&b=%20x+y&a=2&&c") == {"a": ["1", "2"], "b": [" x y"], "c": [""]}


@pytest.mark.parametrize("text", [b"a=%ff", b"%ff=a", b"a=%0d", b"a=%0A", b"a=%00", b"&".join([b"a"] * 101)])
def test_a_query_that_cannot_be_read(text):
    with pytest.raises(BadQuery):
        read_query(text)


def test_names_are_bounded():
    assert names(["a,b", " c ,,"]) == ["a", "b", "c"]
    with pytest.raises(BadQuery):
        names([",".join("x" * 1_001)])
