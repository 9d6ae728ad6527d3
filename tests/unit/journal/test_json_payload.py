"""The JSON payload (contract 2.2), the choice between the two forms, and both as each other's inverse."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.journal.codec.binary import decode_binary, encode_binary
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.codec.json_payload import decode_json, encode_json
from tidemark.journal.codec.json_text import LONG_MAX, canonical_text
from tidemark.journal.codec.payload import decode, encode
from tidemark.journal.errors import Undecodable, Unwritable
from tidemark.journal.events import NO_METADATA, EncodedEvent, Events, PayloadMetadata, record_metadata

pytestmark = pytest.mark.unit


def test_2_2_the_writers_form_both_ways() -> None:
    data = (
        '{"events":[{"seqNr":1,"tags":["0","1"],"payloadType":"json","payload":{"a":"é"}},'
        '{"seqNr":2,"tags":[],"payloadType":"text","payload":"\\" {} "},{"seqNr":3,"tags":[]}],'
        '"metadata":{"expireAfter":"1 day","data":{"key":"value"}}}'
    ).encode()
    events = Events(
        (
            EncodedEvent(1, ("0", "1"), "json", '{"a":"é"}'),
            EncodedEvent(2, (), "text", '" {} '),
            EncodedEvent(3),
        ),
        PayloadMetadata(ExpireAfter(1, "day"), '{"key":"value"}'),
    )
    assert decode_json(data) == events
    assert encode_json(events) == data


def test_2_2_the_other_writers_nulls() -> None:
    data = (
        b'{"events":[{"seqNr":1,"tags":[],"payloadType":null,"payload":null}],'
        b'"metadata":{"expireAfter":null,"data":null}}'
    )
    assert decode_json(data) == Events((EncodedEvent(1),))


@pytest.mark.parametrize(
    ("item", "event"),
    [
        ({"seqNr": 1.0, "tags": []}, EncodedEvent(1)),
        ({"seqNr": 1, "tags": ["b", "a", "b"]}, EncodedEvent(1, ("b", "a"))),
        ({"seqNr": 1, "tags": [], "payload": [1.0]}, EncodedEvent(1, (), "json", "[1]")),
        ({"seqNr": 1, "tags": [], "payloadType": "json", "payload": None}, EncodedEvent(1)),
        ({"seqNr": 1, "tags": [], "payloadType": "text", "payload": None}, EncodedEvent(1)),
        ({"seqNr": 1, "tags": [], "payload": False}, EncodedEvent(1, (), "json", "false")),
        (
            {"seqNr": 1, "tags": ["\ud800"], "payloadType": "text", "payload": "a\ud800"},
            EncodedEvent(1, ("?",), "text", "a?"),
        ),
        ({"seqNr": 1, "tags": [], "payload": "\ud800"}, EncodedEvent(1, (), "json", '"\\ud800"')),
        ({"seqNr": LONG_MAX, "tags": [], "more": {}}, EncodedEvent(LONG_MAX)),
    ],
)
def test_2_2_events(item: object, event: EncodedEvent) -> None:
    assert decode_json(json.dumps({"events": [item]}).encode()) == Events((event,))


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"events": []},
        {"events": None},
        {"events": {}},
        {"events": [1]},
        {"events": [{"tags": []}]},
        {"events": [{"seqNr": 0, "tags": []}]},
        {"events": [{"seqNr": "1", "tags": []}]},
        {"events": [{"seqNr": True, "tags": []}]},
        {"events": [{"seqNr": 1}]},
        {"events": [{"seqNr": 1, "tags": None}]},
        {"events": [{"seqNr": 1, "tags": [1]}]},
        {"events": [{"seqNr": 1, "tags": "a"}]},
        {"events": [{"seqNr": 1, "tags": [], "payloadType": "binary"}]},
        {"events": [{"seqNr": 1, "tags": [], "payloadType": []}]},
        {"events": [{"seqNr": 1, "tags": [], "payloadType": "text", "payload": 1}]},
        {"events": [{"seqNr": 1, "tags": []}], "metadata": 1},
        {"events": [{"seqNr": 1, "tags": []}], "metadata": {"expireAfter": "soon"}},
    ],
)
def test_2_2_refused(document: object) -> None:
    with pytest.raises(Undecodable):
        decode_json(json.dumps(document).encode())


def test_2_2_empty_bytes_are_not_a_payload() -> None:
    with pytest.raises(Undecodable):
        decode("json", b"")


@pytest.mark.parametrize(
    ("kinds", "form"),
    [
        (["json", "text", None], "json"),
        ([None], "json"),
        (["json", "binary"], "binary"),
        (["binary"], "binary"),
    ],
)
def test_2_2_one_binary_payload_makes_the_record_binary(kinds: list[str | None], form: str) -> None:
    bodies = {"json": "1", "text": "a", "binary": b"a", None: None}
    events = Events(tuple(EncodedEvent(n, (), kind, bodies[kind]) for n, kind in enumerate(kinds, 1)))  # type: ignore[arg-type]
    chosen, data = encode(events)
    assert chosen == form
    assert decode(chosen, data) == events


def test_2_2_not_written_as_json() -> None:
    for event in (EncodedEvent(0), EncodedEvent(1, (), "binary", b"a")):
        with pytest.raises(Unwritable):
            encode_json(Events((event,)))
    with pytest.raises(Unwritable):
        encode(Events(()))


@pytest.mark.parametrize(
    ("header", "payload", "column"),
    [
        (None, NO_METADATA, '{"header":{},"payload":{}}'),
        ('{"a":1}', NO_METADATA, '{"header":{"data":{"a":1}},"payload":{}}'),
        (None, PayloadMetadata(ExpireAfter(1, "day")), '{"header":{},"payload":{"expireAfter":"1 day"}}'),
        ("1", PayloadMetadata(None, "[2]"), '{"header":{"data":1},"payload":{"data":[2]}}'),
    ],
)
def test_3_5_metadata_column(header: str | None, payload: PayloadMetadata, column: str) -> None:
    assert record_metadata(header, payload) == column


texts = st.text('aé"\\\n\x00\x7f/😀\u2028', max_size=6)
# A null cannot be told from nothing in the JSON form.
jsons = (
    st.recursive(
        st.booleans() | st.integers() | texts,
        lambda inner: st.lists(inner | st.none(), max_size=2) | st.dictionaries(texts, inner, max_size=2),
        max_leaves=4,
    )
    .map(json.dumps)
    .map(lambda text: canonical_text(text.encode()))
)
payloads = st.one_of(
    st.tuples(st.just("json"), jsons), st.tuples(st.just("text"), texts), st.tuples(st.none(), st.none())
)
units = st.sampled_from(["day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond"])
normal_durations = st.builds(ExpireAfter, st.integers(-1000, 1000), units).map(
    lambda some: ExpireAfter.of_nanos(some.nanos)
)


def events_of(payload: st.SearchStrategy[tuple[object, object]]) -> st.SearchStrategy[Events]:
    event = st.builds(
        lambda seq_nr, tags, typed: EncodedEvent(seq_nr, tuple(tags), *typed),
        st.integers(1, LONG_MAX),
        st.lists(texts, max_size=5, unique=True),
        payload,
    )
    metadata = st.builds(PayloadMetadata, st.none() | normal_durations, st.none() | jsons)
    return st.builds(Events, st.lists(event, min_size=1, max_size=4).map(tuple), metadata)


@given(events_of(payloads))
@settings(max_examples=80, deadline=None)
def test_2_2_what_is_written_as_json_is_read_again(events: Events) -> None:
    assert decode_json(encode_json(events)) == events


@given(events_of(payloads | st.tuples(st.just("binary"), st.binary(max_size=8))))
@settings(max_examples=80, deadline=None)
def test_2_1_what_is_written_as_binary_is_read_again(events: Events) -> None:
    assert decode_binary(encode_binary(events)) == events
