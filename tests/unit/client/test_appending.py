"""What an append refuses before it is sent: whatever would stop a writer, and numbers not expected."""

import asyncio
import math
from decimal import Decimal
from typing import Any

import pytest
from tests.support.journal_samples import TOPIC
from tests.support.memory_client import World

from tidemark.client.actions import MOST_OF_A_ROW
from tidemark.client.async_journal import AsyncJournal
from tidemark.client.errors import BadEvent, BadInput, Conflict, Misplaced
from tidemark.client.events import Event
from tidemark.journal.action import Append, Mark
from tidemark.journal.fold import MOST_SEGMENTS
from tidemark.journal.head import Head
from tidemark.journal_tables.cells import longest_key

pytestmark = pytest.mark.unit

LONGEST = longest_key(TOPIC)
ONE = [Event.text(1, "x")]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def appends(world: World) -> list[Append]:
    actions = [world.action(offset) for offset in range(len(world.records))]
    return [action for action in actions if isinstance(action, Append)]


# Item 9: what would stop a writer


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        [1, -math.inf],
        {1, 2},
        Decimal(1),
        object(),
        {(1,): 1},
        10**400,
        nested(5_000),
        b"x",
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_json_cannot_hold_is_a_bad_event(value: Any) -> None:
    with pytest.raises(BadEvent) as raised:
        Event.json(7, value)
    assert raised.value.seq_nr == 7


def test_a_value_that_holds_itself_is_a_bad_event() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(BadEvent):
        Event.json(1, value)


@pytest.mark.parametrize("tags", [1, None, "tag", [1]])
def test_tags_that_are_no_list_of_texts_are_a_bad_event(tags: Any) -> None:
    with pytest.raises(BadEvent):
        Event.text(1, "x", tags)


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "k" * (LONGEST + 1)},
        {"key": "ž" * (LONGEST // 2 + 1)},
        {"key": "\ud800"},
        {"key": b"k"},
        {"key": None},
        {"metadata": math.nan},
        {"metadata": {1, 2}},
        {"metadata": nested(254)},
        {"payload_metadata": math.inf},
        {"payload_metadata": nested(255)},
        {"headers": {"h": 1}},
        {"headers": {"journal.action": "x"}},
        {"headers": {"h": "\udfff"}},
        {"expire_after": "200000 days"},
        {"expire_after": 5},
        {"events": []},
        {"events": 5},
        {"events": Event.text(1, "x")},
        {"events": ["x"]},
        {"events": [Event.text(1, "x"), Event.text(3, "x")]},
        {"events": [Event.json(1, nested(254))]},
        {"events": [Event.text(1, "x" * MOST_OF_A_ROW)]},
        {"events": [Event.binary(1, b"x" * MOST_OF_A_ROW)]},
        {"expected_last": -1},
        {"expected_last": "1"},
        {"expected_last": True},
        {"expected_last": 5},
    ],
    ids=lambda wrong: f"{next(iter(wrong))}",
)
def test_what_cannot_be_taken_is_said_and_not_sent(wrong: dict[str, Any]) -> None:
    world = World()
    key, events = wrong.pop("key", "k"), wrong.pop("events", ONE)
    with pytest.raises(BadInput) as raised:
        world.client().append(key, events, **wrong)
    assert str(raised.value).endswith("Nothing was sent.")
    assert len(str(raised.value)) < 500
    assert world.records == []


@pytest.mark.parametrize(
    "right",
    [
        {"key": "k" * LONGEST},
        {"key": ""},
        {"metadata": nested(253)},
        {"payload_metadata": nested(253)},
        {"events": [Event.json(1, nested(253))]},
        {"events": [Event.json(1, "\ud800")]},
        {"events": [Event.text(1, "\x00", ["", "\x00", "t" * 70_000])]},
        {"events": [Event.binary(2**63 - 1, b"")]},
        {"headers": {"": "", "h" * 70_000: "\x00"}},
    ],
    ids=lambda right: f"{next(iter(right))}",
)
def test_what_a_writer_takes_is_sent_replicated_and_read(right: dict[str, Any]) -> None:
    world = World()
    key, events = right.pop("key", "k"), right.pop("events", ONE)
    world.client().append(key, events, **right)
    before = list(world.client().read(key))
    world.replicate()
    assert before == list(world.client().read(key))
    assert [event.seq_nr for event in before] == [event.seq_nr for event in events]


@pytest.mark.parametrize("use", ["read", "pointer", "purge", "mark"])
def test_no_use_of_a_key_that_cassandra_cannot_take(use: str) -> None:
    world = World()
    with pytest.raises(BadInput, match=f"{LONGEST} bytes at most"):
        getattr(world.client(), use)("k" * (LONGEST + 1))
    assert world.records == []


@pytest.mark.parametrize("topic", ["", ".", "..", "a b", "t" * 250, "ž", None, 5])
def test_a_name_that_no_topic_can_have(topic: Any) -> None:
    from tidemark.client.journal import Journal

    journal = Journal.__new__(Journal)
    with pytest.raises(BadInput, match="1 to 249"):
        journal._assemble(topic, World(), World(), World())


@pytest.mark.parametrize("origin", [5, b"host", "\ud800"])
def test_an_origin_that_no_reader_could_take(origin: Any) -> None:
    from tidemark.client.journal import Journal

    journal = Journal.__new__(Journal)
    with pytest.raises(BadInput, match="origin"):
        journal._assemble(TOPIC, World(), World(), World(), True, origin)


def jumped(world: World) -> None:
    """An entity whose numbers jump so far that its segments cannot be deleted at once."""
    world.client().append("k", [Event.text(1 + MOST_SEGMENTS * world.segment_size, "x")])


@pytest.mark.parametrize("replicated", [False, True])
def test_a_delete_or_purge_over_too_many_segments_is_refused(replicated: bool) -> None:
    world = World("A1,2,3", segment_size=2)
    jumped(world)
    if replicated:
        world.replicate()
    with pytest.raises(BadInput, match="100001 segments of 2"):
        world.client().purge("k")
    with pytest.raises(BadInput, match="100001 segments of 2"):
        world.client().delete("k", 10**9)
    assert world.client().delete("k", MOST_SEGMENTS) is not None
    world.replicate()


def test_an_entity_that_moved_to_another_partition_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World("A1,2")
    world.replicate()
    head: Head = world.ask_head("k")()  # type: ignore[assignment]
    monkeypatch.setattr(world, "ask_head", lambda key: lambda: head._replace(partition=4))
    for use in (
        lambda: world.client().delete("k", 1),
        lambda: world.client().purge("k"),
        lambda: world.client().append("k", [Event.text(3, "x")], expected_last=2),
    ):
        with pytest.raises(Misplaced) as raised:
            use()
        assert (raised.value.kept, raised.value.partition) == (4, 0)


# Item 10: the number that is expected


@pytest.mark.parametrize(
    ("history", "replicated", "last"),
    [
        ("", 0, None),
        ("A1,2", 0, 2),
        ("A1,2", 1, 2),
        ("A1,2 A3", 1, 3),
        ("A1,2 D2", 1, 2),
        ("A1,2 P", 1, None),
        ("A1,2 P A1", 3, 1),
        ("A1,2 A1", 2, 1),
    ],
)
def test_an_append_that_expects_the_last_number(history: str, replicated: int, last: int | None) -> None:
    world = World(history)
    world.replicate(replicated)
    before = len(appends(world))
    present = last or 0
    for expected in {0, 1, 2, 3} - {present}:
        with pytest.raises(Conflict) as raised:
            world.client().append("k", [Event.text(expected + 1, "x")], expected_last=expected)
        assert (raised.value.expected, raised.value.last) == (expected, last)
    assert len(appends(world)) == before
    world.client().append("k", [Event.text(present + 1, "x")], expected_last=present)
    assert len(appends(world)) == before + 1


def test_the_events_follow_the_expected_number() -> None:
    world = World("A1,2")
    with pytest.raises(BadInput, match="event 4 does not follow expected_last=2"):
        world.client().append("k", [Event.text(4, "x")], expected_last=2)
    assert not any(isinstance(world.action(offset), Mark) for offset in range(len(world.records)))


def test_an_append_without_it_does_not_look() -> None:
    world = World("A1,2")
    world.client().append("k", [Event.text(2, "x")])
    assert world.asked == ["append"]


def test_the_same_with_an_event_loop() -> None:
    world = World("A1,2")
    journal = AsyncJournal.of_journal(world.client())
    with pytest.raises(Conflict):
        asyncio.run(journal.append("k", [Event.text(2, "x")], expected_last=1))
    asyncio.run(journal.append("k", [Event.text(3, "x")], expected_last=2))
    assert appends(world)[-1].first == 3
