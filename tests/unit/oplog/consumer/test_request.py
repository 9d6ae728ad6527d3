"""The request for a stream, and answers that are no stream."""

from datetime import UTC, datetime

import pytest

from tidemark.oplog.consumer.errors import BadOpLogOption, StreamDenied, StreamRefused
from tidemark.oplog.consumer.request import StreamAddress, TryLater, judged

pytestmark = pytest.mark.unit

STREAM = {"content-type": "text/event-stream; charset=utf-8"}
URL = "http://agent:8042/"


def given_address(url: str = URL, **options) -> StreamAddress:
    return StreamAddress.of(url, **{"types": None, "parents": None, "since": None, "token": None, **options})


def test_R19_types_are_asked_for():
    assert str(given_address(types=["video", "user"]).url) == "http://agent:8042/?types=video%2Cuser"


def test_R20_parents_are_asked_for_and_escaped():
    assert str(given_address(parents="user/1&x").url).endswith("?parents=user%2F1%26x")


def test_a_query_of_the_address_is_kept():
    address = given_address("https://agent/ops?ticket=t", types="video")
    assert dict(address.url.params) == {"ticket": "t", "types": "video"}


@pytest.mark.parametrize("since", [1_767_323_045_678, datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)])
def test_a_time_is_asked_for_in_milliseconds(since):
    assert given_address(since=since).url.params["since"] == "1767323045678"


@pytest.mark.parametrize(
    "options",
    [
        {"url": "agent:8042"},
        {"url": "ftp://agent"},
        {"url": "http://"},
        {"url": "http://agent:port"},
        {"types": []},
        {"types": ""},
        {"types": ["a,b"]},
        {"parents": ["", "x"]},
        {"parents": [1]},
        {"since": datetime(2026, 1, 2)},
        {"since": -1},
        {"since": 10**13},
        {"token": "a\nb"},
        {"token": ""},
        {"token": "é"},
    ],
)
def test_an_argument_that_is_not_valid_is_refused(options):
    with pytest.raises(BadOpLogOption) as refused:
        given_address(**options)
    assert refused.value.option == next(iter(options))


def test_messages_have_neither_password_nor_query():
    address = given_address("http://user:secret@agent:8042/ops?ticket=secret")
    assert address.shown == "http://agent:8042/ops"


def test_the_token_is_in_no_representation():
    assert "secret" not in repr(given_address(token="secret"))


def test_R16_the_position_is_in_a_header():
    assert given_address().headers("o1.x")["Last-Event-ID"] == "o1.x"


def test_R15_without_a_position_there_is_no_header():
    assert "Last-Event-ID" not in given_address().headers(None)


def test_a_stream():
    assert judged(URL, 200, STREAM, b"") is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_not_accepted_is_an_error(status):
    with pytest.raises(StreamDenied, match="type `video` is not allowed"):
        judged(URL, status, {}, b"type `video` is not allowed\n")


@pytest.mark.parametrize("status", [204, 301, 307, 400, 404, 405, 406, 410])
def test_what_a_retry_cannot_change_is_an_error(status):
    with pytest.raises(StreamRefused) as refused:
        judged(URL, status, {}, b"bad id")
    assert refused.value.status == status


@pytest.mark.parametrize(
    "headers", [{"content-type": "text/html"}, {}, {**STREAM, "content-encoding": "gzip"}]
)
def test_an_answer_that_is_no_stream_is_an_error(headers):
    with pytest.raises(StreamRefused):
        judged(URL, 200, headers, b"<html>")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_passes_by_itself_is_tried_later(status):
    later = judged(URL, status, {"retry-after": "7"}, b"")
    assert isinstance(later, TryLater)
    assert later.wait == 7


@pytest.mark.parametrize("value", ["", "soon", "-1", "Wed, 01 Jan 2020 00:00:00 GMT"])
def test_a_wait_that_makes_no_sense_is_none(value):
    later = judged(URL, 503, {"retry-after": value}, b"")
    assert later is not None
    assert later.wait == 0
