"""Events to append and events read: what is refused, and that both places give the same."""

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest
from tests.support.memory_client import World

from tidemark.client.errors import BadEvent
from tidemark.client.events import Event, Metadata, event_of_row, read_metadata_column

pytestmark = pytest.mark.unit


def test_json_is_kept_in_its_canonical_form() -> None:
    assert Event.json(1, {"b": 1.50, "a": "ž", "n": None}).content == '{"b":1.5,"a":"ž","n":null}'
    assert Event.json_text(1, ' {"n": 1.000000000000000000001} ').content == '{"n":1.000000000000000000001}'


def test_tags_are_kept_once() -> None:
    assert Event.text(1, "", ["b", "a", "b"]).tags == ("b", "a")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Event.text(0, "a"), "its number has to be from 1"),
        (lambda: Event.text(2**63, "a"), "its number has to be from 1"),
        (lambda: Event.text(True, "a"), "its number has to be from 1"),
        (lambda: Event.text("1", "a"), "its number has to be from 1"),
        (lambda: Event.text(1, b"a"), "bytes cannot be its text payload"),
        (lambda: Event.binary(1, "a"), "str cannot be its binary payload"),
        (lambda: Event(1, "xml", "a"), "str cannot be its xml payload"),
        (lambda: Event(1, None, "a"), "str cannot be its None payload"),
        (lambda: Event.text(1, "\ud800"), "UTF-8 cannot hold its text"),
        (lambda: Event.empty(1, "tag"), "its tags have to be a list of texts"),
        (lambda: Event.empty(1, [1]), "its tags have to be a list of texts"),
        (lambda: Event.empty(1, ["\ud800"]), "UTF-8 cannot hold its text"),
        (lambda: Event.json_text(1, "{"), "its payload is not JSON"),
        (lambda: Event.json_text(1, "NaN"), "its payload is not JSON"),
        (lambda: Event.json(1, None), "make it Event.empty"),
    ],
)
def test_an_event_that_no_reader_could_take_back(make, said: str) -> None:
    with pytest.raises(BadEvent, match=said) as raised:
        make()
    assert str(raised.value).endswith("Nothing was sent.")


KINDS = [
    Event.json(1, {"a": [1, 2.5, "x"]}, ["t", "u"]),
    Event.json_text(1, '{"n":123456789012345678901234567890}'),
    Event.json(1, "text in JSON"),
    Event.text(1, "žluťoučký\n"),
    Event.text(1, ""),
    Event.binary(1, b"\x00\xff"),
    Event.binary(1, b""),
    Event.empty(1, ["t"]),
]


@pytest.mark.parametrize("event", KINDS, ids=lambda event: f"{event.payload_type} {event.content!r:.12}")
def test_kafka_and_cassandra_give_the_same_event(event: Event) -> None:
    world = World()
    client = world.client()
    client.append(
        "k",
        [event],
        expire_after="90 minutes",
        metadata={"by": "ann"},
        payload_metadata=[1],
        headers={"h": "v"},
    )
    (from_kafka,) = client.read("k")
    world.replicate()
    (from_cassandra,) = client.read("k")
    assert from_kafka == from_cassandra
    assert (from_kafka.payload_type, from_kafka.content) == (event.payload_type, event.content)
    assert from_kafka.metadata == Metadata({"by": "ann"}, [1], "90 minutes")
    assert (from_kafka.tags, from_kafka.headers) == (frozenset(event.tags), {"h": "v"})
    assert (from_kafka.origin, from_kafka.partition, from_kafka.offset) == ("here", 0, 0)


def test_a_payload_is_its_python_value() -> None:
    world = World()
    client = world.client()
    client.append("k", [Event.json(1, {"a": [1, "x"]}), Event.text(2, "t"), Event.empty(3)])
    client.append("k", [Event.binary(4, b"b"), Event.json_text(5, "0.1234567890123456789")])
    payloads = [event.payload for event in client.read("k")]
    assert payloads == [{"a": [1, "x"]}, "t", None, b"b", Decimal("0.1234567890123456789")]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (None, Metadata()),
        ("{}", Metadata()),
        ('{"header":{},"payload":{}}', Metadata()),
        ('{"header":{"data":1},"payload":{"expireAfter":"1 day","data":2}}', Metadata(1, 2, "1 day")),
        ('{"data":{"old":true}}', Metadata({"old": True})),
        ("[]", Metadata()),
    ],
)
def test_metadata_as_it_was_written_by_any_version(column: str | None, expected: Metadata) -> None:
    assert read_metadata_column(column) == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({}, (None, None)),
        ({"payload_type": "json", "payload_txt": "1"}, ("json", "1")),
        ({"payload_type": "xml", "payload_bin": b"x"}, ("binary", b"x")),
        ({"payload_type": "json", "payload_bin": b"x"}, ("binary", b"x")),
        ({"payload_type": "binary"}, ("binary", b"")),
    ],
)
def test_payloads_as_they_may_be_in_a_row(cells: dict, expected: tuple) -> None:
    names = ("payload_type", "payload_txt", "payload_bin", "tags", "metadata", "headers", "origin", "version")
    place = {"seq_nr": 1, "timestamp": datetime(2026, 1, 1), "partition": 0, "offset": 0}
    event = event_of_row(SimpleNamespace(**{**dict.fromkeys(names), **cells, **place}))
    assert (event.payload_type, event.content) == expected
    assert (event.tags, event.headers, event.timestamp.tzinfo) == (frozenset(), {}, UTC)
