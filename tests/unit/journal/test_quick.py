"""The quick ways of reading against the careful one: the same value, or the same error, for any bytes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.journal import jsonpayload, jsontext, record
from tidemark.journal.action import Append
from tidemark.journal.binary import decode_binary
from tidemark.journal.errors import JournalError
from tidemark.journal.events import Event, Events, PayloadMetadata
from tidemark.journal.expiry import ExpireAfter
from tidemark.journal.jsonpayload import decode_json
from tidemark.journal.jsontext import LONG_MAX, NeedsCare, canonical, canonical_text, parse
from tidemark.journal.record import read_action

pytestmark = pytest.mark.unit


@contextmanager
def only_careful() -> Iterator[None]:
    """As if nothing could ever be read quickly."""
    with (
        patch.object(jsontext, "_quick", side_effect=NeedsCare),
        patch.object(jsonpayload, "_read_document", side_effect=NeedsCare),
        patch.object(record, "_read_append", side_effect=NeedsCare),
    ):
        yield


@contextmanager
def only_quick() -> Iterator[None]:
    """As if there were no care to fall back on."""
    with patch.object(jsonpayload, "parse", None), patch.object(record, "parse", None):
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


spaces = st.sampled_from([""] * 6 + [" ", "\n", "\t\r "])
numbers = st.one_of(
    st.integers(-(10**26), 10**26).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,5})?", fullmatch=True),
    st.sampled_from(
        [
            *"-0 0.0 -0.0 0e5 0e9999 1e6177 1e6178 1e-6178 1E400 999999999999999.5 0.0001 0.00001".split(),
            *("9" * 19, "9" * 20, "1" + "0" * 20, "-" + "8" * 20, "1" * 309, "1" * 310, "0." + "3" * 310),
            *"9007199254740993.0 01 1. - .5 NaN".split(),
        ]
    ),
)
# Pieces of a string's inside, good and bad.
pieces = st.sampled_from(
    [
        *r"a é 😀 / \/ \u00E9 \u007F \u001F \n \" \\ \ud83d\ude00 \ud800 \udc00 \u0000 \x \u12 { ] , : e5 1.0".split(),
        *("\x7f", "\u2028", "\n", "\x01", "1" * 20, ":" + "1" * 20, "-" + "1" * 25),
    ]
)
texts = st.lists(pieces, max_size=4).map(lambda found: f'"{"".join(found)}"')
names = st.sampled_from(
    [
        *r"a b é \u0061 \ud800 events seqNr seq\u004er tags payload payloadType metadata data".split(),
        *"expireAfter append delete range from to origin".split(),
        *("", "\x7f"),
    ]
).map(lambda name: f'"{name}"')


def arrays_of(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda found, space: f"[{space}{f'{space},'.join(found)}]", st.lists(items), spaces)


def members(found: list[str], space: str) -> str:
    return f"{{{space}{f',{space}'.join(found)}{space}}}"


def objects_of(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.builds(lambda name, space, item: f"{name}{space}:{space}{item}", names, spaces, items)
    return st.builds(members, st.lists(member, max_size=4), spaces)


values = st.recursive(
    numbers | texts | st.sampled_from(["true", "false", "null", "[]", "{}"]),
    lambda inner: arrays_of(inner) | objects_of(inner),
    max_leaves=8,
)


def rarely(odd: st.SearchStrategy[str], usual: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.integers(0, 9).flatmap(lambda n: odd if n == 9 else usual)


def shaped(**usual: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An object with these members, mostly; sometimes one is odd, missing, twice there, or one too many."""
    each = [
        rarely(values, value).map(lambda text, name=name: [f'"{name}":{text}'])
        for name, value in usual.items()
    ]
    lists = [rarely(st.just([]), member) for member in each]  # type: ignore[arg-type]
    more = rarely(st.lists(st.one_of(*each, objects_of(values).map(lambda o: [o[1:-1]]))), st.just([]))  # type: ignore[arg-type]
    return st.builds(
        lambda found, extra, space: members(
            [text for some in (*found, *extra) for text in some if text.strip()], space
        ),
        st.tuples(*lists),
        more,
        spaces,
    )


some_numbers = st.sampled_from(["1", "2", "3", str(LONG_MAX), str(LONG_MAX + 1), "1.0", "2e0", "0"])
metadata = shaped(expireAfter=st.sampled_from(['"60 s"', "null", "1000", '"soon"']), data=values)
documents = shaped(
    events=st.lists(
        shaped(
            seqNr=some_numbers,
            tags=st.sampled_from(["[]", '["a"]', '["b","a","b"]', r'["\ud800"]', "[1]"]),
            payloadType=st.sampled_from(['"json"', '"text"', "null", '"binary"', r'"\u006ason"']),
            payload=values,
        ),
        max_size=3,
    ).map(lambda found: f"[{','.join(found)}]"),
    metadata=metadata | st.just("{}"),
)
names_of_hosts = texts | st.sampled_from(['"host"', "null"])
headers = shaped(
    append=shaped(
        range=shaped(**{"from": some_numbers, "to": some_numbers}),
        origin=names_of_hosts,
        version=names_of_hosts,
        payloadType=st.sampled_from(['"json"', '"binary"', '"text"']),
        metadata=metadata | st.just("{}"),
    )
) | shaped(delete=shaped(to=some_numbers, origin=names_of_hosts))


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[str]) -> bytes:
    """A document's bytes, as they are or with something done to them."""
    data = draw(whole).encode("utf-8", "surrogatepass")
    place = draw(st.integers(0, len(data)))
    match draw(st.sampled_from(["whole", "whole", "cut", "behind", "before", "byte", "gone", "nested"])):
        case "cut":
            return data[:place]
        case "behind":
            return data + draw(st.sampled_from([b" ", b"\n", b"x", b"}", b",1", b"\x00", b"{}"]))
        case "before":
            return draw(st.sampled_from([b" ", b"\xef\xbb\xbf", b"\x00", b"1"])) + data
        case "byte":
            return data[:place] + draw(st.binary(min_size=1, max_size=2)) + data[place + 1 :]
        case "gone":
            return data[:place] + data[place + 1 :]
        case "nested":
            levels = draw(st.sampled_from([200, *range(250, 259), 400]))
            return data.replace(b"null", b"[" * levels + b"]" * levels)
        case _:
            return data


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
    assert agree(decode_json, (EVENT % payload).encode())


@pytest.mark.parametrize(
    ("document", "events"),
    [
        (
            '{"events":[{"seqNr":7,"tags":[],"payloadType":"json","payload":{"a":"é","b":[1,1.50,1e30,0.1]}}],'
            '"metadata":{}}',
            Events((Event(7, (), "json", '{"a":"é","b":[1,1.5,1E+30,0.1]}'),)),
        ),
        (
            ' { "events" : [ { "tags" : [ "b" , "a" , "b" ] , "seqNr" : 1 , "payload" : "\\u007f" } ] } ',
            Events((Event(1, ("b", "a"), "json", r'"\u007f"'),)),
        ),
        (
            '{"events":[{"seqNr":1,"tags":[],"payloadType":"text","payload":"é"},{"seqNr":2,"tags":[]}],'
            '"metadata":{"expireAfter":"60 s","data":{"a":1.0}}}',
            Events(
                (Event(1, (), "text", "é"), Event(2)), PayloadMetadata(ExpireAfter(1, "minute"), '{"a":1}')
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
