"""What a client sends, and what it does not."""

import subprocess
import sys
from datetime import timedelta

import pytest
from tests.support.memory_client import World

import tidemark
from tidemark.client.errors import BadInput
from tidemark.client.events import Event
from tidemark.client.journal import Journal
from tidemark.journal.action import Append, Delete, Mark, Purge
from tidemark.journal.codec.payload import decode
from tidemark.kafka.producer import Placed

pytestmark = pytest.mark.unit


def sent(world: World) -> list:
    return [world.action(offset) for offset in range(len(world.records))]


def test_an_append_is_one_record_with_everything_in_it() -> None:
    world = World()
    placed = world.client().append(
        "k",
        [Event.json(3, {"a": 1}, ["t"]), Event.text(4, "x")],
        expire_after=timedelta(days=2),
        metadata={"by": 1.0},
        headers={"h": "v"},
    )
    (append,) = sent(world)
    assert placed == Placed(0, 0)
    assert isinstance(append, Append)
    assert (append.key, append.first, append.last, append.form) == ("k", 3, 4, "json")
    assert (append.metadata, append.headers, append.origin) == ('{"by":1}', {"h": "v"}, "here")
    assert append.version.startswith("tidemark-")
    assert decode(append.form, append.payload).metadata.expire_after.text == "2 days"


def test_one_binary_payload_makes_the_whole_record_binary() -> None:
    world = World()
    world.client().append("k", [Event.json(1, 1), Event.binary(2, b"x")])
    assert sent(world)[0].form == "binary"


def test_a_delete_goes_no_further_than_the_last_event() -> None:
    world = World("A1,2,3")
    assert world.client().delete("k", 99, headers={"why": "old"}) == Placed(0, 2)
    assert [type(action) for action in sent(world)] == [Append, Mark, Delete]
    assert sent(world)[-1].to == 3
    assert world.records[-1]["headers"][-1] == {"name": "why", "value": b"old"}


def test_a_delete_of_nothing_sends_nothing() -> None:
    world = World("A1,2,3 P")
    assert world.client().delete("k", 2) is None
    assert not any(isinstance(action, Delete) for action in sent(world))


def test_an_entity_without_events_has_a_pointer_all_the_same() -> None:
    world = World("A1,2,3 D3")
    assert world.client().pointer("k") == 3
    assert world.client().delete("k", 5) is not None
    assert sent(world)[-1].to == 3


def test_a_purge_is_always_sent() -> None:
    world = World()
    assert world.client().purge("k") == Placed(0, 1)
    assert isinstance(sent(world)[1], Purge)


def test_marks_have_ids_of_their_own() -> None:
    world = World()
    assert [world.client().mark("k").offset for _ in range(2)] == [0, 1]
    assert len({mark.id for mark in sent(world)}) == 2


ONE = [Event.empty(1)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda j: j.append("k", []), "at least one event"),
        (lambda j: j.append("k", [Event.empty(1), Event.empty(3)]), "event 3 came where 2 should have"),
        (lambda j: j.append("k", [Event.empty(2), Event.empty(1)]), "event 1 came where 3 should have"),
        (lambda j: j.append("k", [{"seq_nr": 1}]), "an event is made by Event.json"),
        (lambda j: j.append(b"k", ONE), "a key is text"),
        (lambda j: j.append("\ud800", ONE), "the key has a lone surrogate"),
        (lambda j: j.append("k", ONE, expire_after="soon"), "is not a duration"),
        (lambda j: j.append("k", ONE, expire_after="0 days"), "longer than nothing"),
        (lambda j: j.append("k", ONE, expire_after=timedelta(days=-1)), "longer than nothing"),
        (lambda j: j.append("k", ONE, expire_after=5), "Give expire_after as text"),
        (lambda j: j.append("k", ONE, metadata={1, 2}), "metadata is not JSON"),
        (lambda j: j.append("k", ONE, payload_metadata=float("nan")), "payload_metadata is not JSON"),
        (lambda j: j.append("k", ONE, headers={"h": b"v"}), "a header is text with a name"),
        (lambda j: j.append("k", ONE, headers={"journal.action": "x"}), "is not free"),
        (lambda j: j.append("k", ONE, headers={"h": "\ud800"}), "header h has a lone surrogate"),
        (lambda j: j.delete("k", 0), "`to` is a number from 1"),
        (lambda j: j.delete("k", "1"), "`to` is a number from 1"),
        (lambda j: j.delete("k", 1, headers={"journal.action": "x"}), "is not free"),
        (lambda j: j.purge(None), "a key is text"),
        (lambda j: j.read("k", 0), "`from_seq_nr` is a number from 1"),
        (lambda j: j.pointer(1), "a key is text"),
        (lambda j: j.mark(1), "a key is text"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_sent(call, said: str) -> None:
    world = World("A1")
    with pytest.raises(BadInput, match=said) as raised:
        call(world.client())
    assert (len(world.records), str(raised.value).endswith("Nothing was sent.")) == (1, True)


def test_leaving_it_closes_its_clients() -> None:
    world = World()
    with world.client() as journal:
        assert journal.topic == "orders"
    assert world.asked == ["close"] * 3  # of the producer, the tail and the guard


def test_importing_tidemark_imports_no_client() -> None:
    heavy = "{'cassandra', 'confluent_kafka', 'kafka', 'pydantic', 'tidemark.client'}"
    code = f"import sys, tidemark; sys.exit(len({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_clients_are_tidemarks_own() -> None:
    assert (tidemark.Journal, tidemark.Event) == (Journal, Event)
    with pytest.raises(AttributeError, match="Jurnal"):
        _ = tidemark.Jurnal
