"""``tidemark journal append``, ``delete``, ``purge``, ``read``, ``pointer``: what a person sees and sends."""

import io
import json

import pytest
from tests.support.memory_client import World

from tidemark.client.journal import Journal
from tidemark.journal.action import Append, Delete, Mark, Purge
from tidemark.journal.codec.payload import decode
from tidemark.journal.events import EncodedEvent

pytestmark = pytest.mark.unit

AT = ("orders", "k", "--topic", "orders")
EXECUTE = ("--execute", "--reason", "asked for", "--by", "ann")


@pytest.fixture
def world(installation, monkeypatch) -> World:
    """A journal in memory instead of the pipeline's."""
    world = World()
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    monkeypatch.setenv("AIRFLOW_CONN_CASSANDRA_DEFAULT", json.dumps({"host": "127.0.0.1"}))
    monkeypatch.setattr(Journal, "of_settings", lambda settings, **_: world.client())
    return world


def sent(world: World) -> list:
    """What was sent, but for marks."""
    actions = [world.action(offset) for offset in range(len(world.records))]
    return [action for action in actions if not isinstance(action, Mark)]


def events_of(append: Append) -> list[EncodedEvent]:
    return list(decode(append.form, append.payload).events)


# Append


def test_append_takes_the_next_number(run, world) -> None:
    world.send_words("A1,2")
    ended = run("journal", "append", *AT, "--json-event", '{"a": 1.0}', "--json-event", "2", "--tag", "t")
    assert (ended.code, ended.out) == (0, "orders/k: event 3 to 4 at 0@2.\n")
    assert events_of(sent(world)[-1]) == [
        EncodedEvent(3, ("t",), "json", '{"a":1}'),
        EncodedEvent(4, ("t",), "json", "2"),
    ]


def test_append_with_everything_said(run, world) -> None:
    more = ("--text", "x", "--seq-nr", "7", "--expire-after", "24 hours", "--json")
    ended = run("journal", "append", *AT, *more)
    assert json.loads(ended.out) == {
        **{"pipeline": "orders", "topic": "orders", "key": "k"},
        **{"first": 7, "last": 7, "partition": 0, "offset": 0},
    }
    (append,) = sent(world)
    assert events_of(append) == [EncodedEvent(7, (), "text", "x")]
    assert decode(append.form, append.payload).metadata.expire_after.text == "24 hours"


def test_append_takes_lines_from_stdin(run, world, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"n":1}\n\n{"n":2}\n'))
    assert run("journal", "append", *AT, "--json-event", "-").code == 0
    assert [event.payload for event in events_of(sent(world)[0])] == ['{"n":1}', '{"n":2}']


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param([*AT], 2, "either --json-event or --text", id="no event"),
        pytest.param(
            [*AT, "--json-event", "1", "--text", "x"], 2, "either --json-event or --text", id="both kinds"
        ),
        pytest.param([*AT, "--json-event", "{"], 1, "Event 1: its payload is not JSON", id="not JSON"),
        pytest.param([*AT, "--json-event", "1", "--json-event", "x"], 1, "Event 2: its", id="the second one"),
        pytest.param([*AT, "--text", "x", "--seq-nr", "0"], 2, "greater than or equal to 1", id="no number"),
        pytest.param(
            [*AT, "--text", "x", "--expire-after", "soon"], 1, "is not a duration", id="no duration"
        ),
        pytest.param(
            ["orders", "k", "--text", "x"], 1, "name one of them: orders, refunds", id="which topic"
        ),
        pytest.param(
            ["orders", "k", "--text", "x", "--topic", "t"], 1, "does not read topic t", id="no topic"
        ),
        pytest.param(["ordres", "k", "--text", "x"], 1, "Did you mean `orders`?", id="no pipeline"),
        pytest.param([*AT, "--text", "x", "--writer", "archive"], 1, "no writer archive", id="no journal"),
        pytest.param([*AT, "--text", "x", "--expected-last", "-1"], 2, "greater than or", id="below none"),
        pytest.param(
            [*AT, "--text", "x", "--seq-nr", "3", "--expected-last", "3"], 1, "does not follow", id="a gap"
        ),
        pytest.param(["orders", "k" * 65_513, *AT[2:], "--text", "x"], 1, "65512 bytes", id="a long key"),
        pytest.param(
            [*AT, "--json-event", "[" * 254 + "]" * 254, "--seq-nr", "1"], 1, "nested deeper", id="too deep"
        ),
        pytest.param([*AT, "--text", "x", "--sequence", "1"], 2, "No such option", id="a misspelled option"),
    ],
)
def test_what_cannot_be_appended_is_said_and_not_sent(run, world, arguments, code, said) -> None:
    ended = run("journal", "append", *arguments)
    assert (ended.code, said in ended.err) == (code, True), ended
    assert (world.records, ended.out) == ([], "")


def test_append_that_expects_a_last_number(run, world) -> None:
    """Item 10."""
    world.send_words("A1,2")
    ended = run("journal", "append", *AT, "--text", "x", "--expected-last", "1")
    assert (ended.code, "its last event is 2" in ended.err, len(sent(world))) == (1, True, 1)
    ended = run("journal", "append", *AT, "--text", "x", "--expected-last", "2")
    assert (ended.code, sent(world)[-1].first) == (0, 3)
    ended = run("journal", "append", "orders", "new", *AT[2:], "--text", "x", "--expected-last", "0")
    assert (ended.code, sent(world)[-1].first) == (0, 1)


def test_the_empty_key_is_a_key(run, world) -> None:
    """Item 9: what can be appended can be read."""
    at = ("orders", "", *AT[2:])
    assert run("journal", "append", *at, "--text", "x").code == 0
    assert run("journal", "pointer", *at).out == "1\n"
    assert run("journal", "read", *at).out.splitlines()[-1] == "1 event."


def test_nothing_on_stdin_is_nothing_to_append(run, world, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    ended = run("journal", "append", *AT, "--text", "-")
    assert (ended.code, "no event on stdin" in ended.err, world.records) == (2, True, [])


# Delete and purge


def test_delete_shows_its_plan_and_sends_nothing(run, world) -> None:
    world.send_words("A1,2,3")
    ended = run("journal", "delete", *AT, "--to", "9")
    assert ended.out.splitlines() == [
        "orders/cassandra: delete",
        "  topic orders, entity k: the last event is 3",
        "  events up to 3 are deleted for every reader, and cannot be brought back",
        'Nothing was changed. Add --execute --reason "…" to do it.',
    ]
    assert [type(action) for action in sent(world)] == [Append]


def test_delete_sends_who_and_why_along(run, world) -> None:
    world.send_words("A1,2,3")
    answer = json.loads(run("journal", "delete", *AT, "--to", "2", *EXECUTE, "--json").out)
    assert (answer["executed"], answer["to"], answer["partition"], answer["offset"]) == (True, 2, 0, 3)
    assert isinstance(sent(world)[-1], Delete)
    headers = {header["name"]: header["value"] for header in world.records[-1]["headers"]}
    assert (headers["tidemark-by"], headers["tidemark-reason"]) == (b"ann", b"asked for")
    assert [event.seq_nr for event in world.client().read("k")] == [3]


def test_purge_shows_its_plan_and_then_does_it(run, world) -> None:
    world.send_words("A1,2,3")
    assert "Nothing was changed." in run("journal", "purge", *AT).out
    assert [type(action) for action in sent(world)] == [Append]
    assert run("journal", "purge", *AT, *EXECUTE).out.endswith("Done by ann.\n")
    assert isinstance(sent(world)[-1], Purge)


def test_there_is_nothing_to_delete_of_what_is_not_there(run, world) -> None:
    ended = run("journal", "delete", *AT, "--to", "1", *EXECUTE)
    assert (ended.code, "topic orders has no entity k. Nothing was changed." in ended.err) == (1, True)
    assert sent(world) == []


@pytest.mark.parametrize("command", [["delete", *AT, "--to", "1"], ["purge", *AT]])
def test_nothing_is_destroyed_without_a_reason(run, world, command) -> None:
    ended = run("journal", *command, "--execute")
    assert (ended.code, "say why" in ended.err, world.records) == (2, True, [])


def test_delete_wants_to_know_how_far(run, world) -> None:
    assert (run("journal", "delete", *AT).code, world.records) == (2, [])


# Read


def test_read_shows_a_line_an_event(run, world) -> None:
    world.send_words("A1,2 A3")
    lines = run("journal", "read", *AT, "--from", "2").out.splitlines()
    assert [line.split()[0] for line in lines] == ["event", "2", "3", "2"]
    assert lines[1].split()[-2:] == ["0@0", '{"n":2}']


def test_read_as_json_is_a_line_an_event_with_everything(run, world) -> None:
    world.send_words("A1~24@5")
    (line,) = run("journal", "read", *AT, "--json").out.splitlines()
    assert json.loads(line) == {
        "seq_nr": 1,
        "timestamp": "1970-01-01T00:00:00.005+00:00",
        "partition": 0,
        "offset": 0,
        "tags": [],
        "payload_type": "json",
        "payload": {"n": 1},
        "metadata": None,
        "payload_metadata": None,
        "expire_after": "24 hours",
        "headers": {},
        "origin": None,
        "version": None,
    }


def test_read_that_fails_has_shown_what_it_had(run, world) -> None:
    world.send_words("A1 A2!")
    ended = run("journal", "read", *AT, "--json")
    assert (ended.code, len(ended.out.splitlines())) == (1, 1)
    assert "the record at offset 1 of partition 0 cannot be understood" in ended.err


def test_pointer(run, world) -> None:
    world.send_words("A1,2 D2")
    assert run("journal", "pointer", *AT).out == "2\n"
    assert json.loads(run("journal", "pointer", *AT, "--json").out)["seq_nr"] == 2
    assert run("journal", "pointer", "orders", "nobody", "--topic", "orders").out == (
        "There is no such entity.\n"
    )
