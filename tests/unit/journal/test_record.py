"""Actions and their Kafka records (contract 1), in both directions, odd ones included."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.journal.action import Action, Append, Delete, Mark, Purge, append
from tidemark.journal.codec.json_text import LONG_MAX
from tidemark.journal.codec.record import NO_TIMESTAMP, read_action, write_action
from tidemark.journal.errors import Undecodable, Unwritable
from tidemark.journal.events import EncodedEvent, Events

pytestmark = pytest.mark.unit

EMPTY = b'{"append":{"range":{"from":1,"to":2},"payloadType":"json","metadata":{}}}'


def read(
    header: bytes | None, *more: tuple[str, bytes | None], key: bytes = b"id", value: bytes | None = b"v"
) -> Action | None:
    return read_action(key, value, 7, 0, [("journal.action", header), *more])


@pytest.mark.parametrize(
    ("action", "header"),
    [
        (
            Append("id", 7, 1, 5, "json", b"v", "host", "1.2", '{"key":"value"}'),
            b'{"append":{"range":{"from":1,"to":5},"origin":"host","version":"1.2","payloadType":"json",'
            b'"metadata":{"data":{"key":"value"}}}}',
        ),
        (Append("id", 7, 1, 2, "json", b"v"), EMPTY),
        (Mark("id", 7, "m", "host", "1"), b'{"mark":{"id":"m","origin":"host","version":"1"}}'),
        (Delete("id", 7, 3, "host"), b'{"delete":{"to":3,"origin":"host"}}'),
        (Purge("id", 7, None, "1"), b'{"purge":{"version":"1"}}'),
        (Purge("id", 7), b'{"purge":{}}'),
    ],
)
def test_1_1_header_both_ways(action: Action, header: bytes) -> None:
    record = write_action(action)
    assert record.headers == (("journal.action", header),)
    assert (record.key, record.timestamp) == (b"id", 7)
    assert record.value == (b"v" if isinstance(action, Append) else None)
    assert read(header) == action


@pytest.mark.parametrize(
    ("header", "action"),
    [
        (b'{"append":{"range":{"from":1,"to":2},"payloadType":"json"}}', Append("id", 7, 1, 2, "json", b"v")),
        (EMPTY.replace(b"{}", b'"x"'), Append("id", 7, 1, 2, "json", b"v")),
        (EMPTY.replace(b"{}", b'{"data":null}'), Append("id", 7, 1, 2, "json", b"v")),
        (EMPTY.replace(b"{}", b'{"data":[1.0]}'), Append("id", 7, 1, 2, "json", b"v", metadata="[1]")),
        (EMPTY.replace(b'"from":1', b'"from":1.0'), Append("id", 7, 1, 2, "json", b"v")),
        (EMPTY.replace(b'"to":2', b'"to":1e2'), Append("id", 7, 1, 100, "json", b"v")),
        (b'{"purge":{"origin":null,"version":null,"new":1}}', Purge("id", 7)),
        (b'{"append":1,"mark":null,"delete":{"to":1}}', Delete("id", 7, 1)),
        (b'{"purge":{},"delete":{"to":1}}', Delete("id", 7, 1)),
        (b' {"delete" : {"to" : 1} } ', Delete("id", 7, 1)),
    ],
)
def test_1_1_old_and_loose_forms(header: bytes, action: Action) -> None:
    assert read(header) == action


@pytest.mark.parametrize("header", [b'{"new":{}}', b"{}", b"[]", b"null", b"1", b'{"append":[]}'])
def test_1_1_an_unknown_action_is_ignored(header: bytes) -> None:
    assert read(header) is None


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"{",
        b"\xff",
        b'{"append":{}}',
        b'{"append":{"range":{"from":1,"to":2}}}',
        EMPTY.replace(b'"json"', b'"text"'),
        EMPTY.replace(b'"json"', b"null"),
        EMPTY.replace(b'"from":1', b'"from":0'),
        EMPTY.replace(b'"from":1', b'"from":3'),
        EMPTY.replace(b'"from":1', b'"from":"1"'),
        EMPTY.replace(b'"from":1', b'"from":1.5'),
        EMPTY.replace(b'"to":2', b'"to":9223372036854775808'),
        EMPTY.replace(b'"metadata":{}', b'"origin":1'),
        b'{"append":{"range":[1,2],"payloadType":"json"}}',
        b'{"mark":{}}',
        b'{"mark":{"id":1}}',
        b'{"delete":{}}',
        b'{"delete":{"to":0}}',
        b'{"delete":{"to":null}}',
        b'{"purge":{"version":1}}',
    ],
)
def test_1_1_a_header_that_cannot_be_understood_is_an_error(header: bytes | None) -> None:
    with pytest.raises(Undecodable):
        read(header)


def test_1_1_the_first_action_header_counts_and_others_are_dropped() -> None:
    found = read(EMPTY, ("journal.action", b"{"), ("a", b"1"))
    assert isinstance(found, Append)
    assert found.headers == {"a": "1"}


def test_1_2_other_headers_are_text_and_the_last_of_a_name_wins() -> None:
    found = read(EMPTY, ("a", b"1"), ("b", "é".encode()), ("a", b"2"))
    assert isinstance(found, Append)
    assert found.headers == {"a": "2", "b": "é"}


@pytest.mark.parametrize("value", [b"\xff", None])
def test_1_2_a_header_that_is_not_text_is_an_error_of_an_append_only(value: bytes | None) -> None:
    with pytest.raises(Undecodable):
        read(EMPTY, ("a", value))
    assert read(b'{"purge":{}}', ("a", value)) == Purge("id", 7)


def test_1_3_no_key_is_skipped_before_anything_is_parsed() -> None:
    assert read_action(None, b"v", 7, 0, [("journal.action", b"{")]) is None


def test_1_3_no_timestamp_is_skipped_before_anything_is_parsed() -> None:
    assert read_action(b"id", b"v", 7, NO_TIMESTAMP, [("journal.action", b"{")]) is None
    assert read_action(b"id", b"v", None, 0, [("journal.action", b"{")]) is None


def test_1_3_no_action_header_is_ignored() -> None:
    assert read_action(b"id", b"v", 7, 0, []) is None
    assert read_action(b"id", b"v", 7, 0, [("Journal.action", b"{"), ("a", None)]) is None


def test_1_3_an_append_without_value_is_ignored_whatever_its_other_headers() -> None:
    assert read(EMPTY, ("a", b"\xff"), value=None) is None


def test_1_3_but_not_when_its_action_header_is_bad() -> None:
    with pytest.raises(Undecodable):
        read(b'{"append":{}}', value=None)


def test_1_3_an_empty_value_is_a_value() -> None:
    found = read(EMPTY, value=b"")
    assert isinstance(found, Append)
    assert found.payload == b""


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"", ""),
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xf0\x80\x80a", "\ufffd\ufffd\ufffda"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xa0a", "\ufffda"),
    ],
)
def test_1_3_a_key_is_decoded_as_java_does(key: bytes, text: str) -> None:
    assert read(b'{"purge":{}}', key=key) == Purge(text, 7)


@pytest.mark.parametrize(
    "action",
    [
        Append("id", 7, 2, 1, "json", b""),
        Append("id", 7, 0, 1, "json", b""),
        Append("id", 7, 1, 1, "json", b"", headers={"journal.action": "x"}),
        Delete("id", 7, 0),
    ],
)
def test_1_1_what_no_reader_could_take_is_not_written(action: Action) -> None:
    with pytest.raises(Unwritable):
        write_action(action)


def test_1_1_the_range_is_that_of_the_first_and_last_event() -> None:
    made = append("id", 7, Events((EncodedEvent(3), EncodedEvent(4), EncodedEvent(5))))
    assert (made.first, made.last, made.form) == (3, 5, "json")
    with pytest.raises(Unwritable):
        append("id", 7, Events((EncodedEvent(2), EncodedEvent(1))))


texts = st.text('aé"\\\n\x00\x7f/😀\u2028', max_size=6)
names = {"origin": st.none() | texts, "version": st.none() | texts}
common = {"key": texts, "timestamp": st.integers(0, LONG_MAX), **names}
numbers = st.integers(1, LONG_MAX)
actions = st.one_of(
    st.builds(
        lambda between, **more: Append(first=min(between), last=max(between), **more),
        st.tuples(numbers, numbers),
        **common,
        form=st.sampled_from(["json", "binary"]),
        payload=st.binary(max_size=8),
        metadata=st.sampled_from([None, "1", '{"a":[]}', '"x"']),
        headers=st.dictionaries(texts, texts, max_size=3),
    ),
    st.builds(Mark, **common, id=texts),
    st.builds(Delete, **common, to=numbers),
    st.builds(Purge, **common),
)


@given(actions)
@settings(max_examples=100, deadline=None)
def test_1_what_is_written_is_read_again(action: Action) -> None:
    record = write_action(action)
    assert read_action(record.key, record.value, record.timestamp, 0, record.headers) == action
