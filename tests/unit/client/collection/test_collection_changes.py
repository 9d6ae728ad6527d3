"""Changes that are followed: across handovers, while bindings come, and to an end."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.collection_rows import ACCOUNTS
from tests.support.reading_world import (
    Accounts,
    ReadingWorld,
    accumulated,
    balances,
    counted,
    emitted,
)

from tidemark.cassandra.cql_types import parse_type
from tidemark.client.collection import changes as changes_module
from tidemark.client.collection.errors import ReaderClosed
from tidemark.client.collection.switch import differences
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.outputs.reader_errors import Forgotten, NotYet, StillNeeded

pytestmark = pytest.mark.unit

ONE_BINDING = st.dictionaries(st.sampled_from("abcd"), st.none() | st.integers(0, 2), min_size=1, max_size=3)


def mended(accounts: Accounts) -> Accounts:
    """What the second rendition makes of the messages of a binding: without c, and b is one less."""
    return {
        key: balance - 1 if key == "b" and balance is not None else balance
        for key, balance in accounts.items()
        if key != "c"
    }


class Follower:
    """A process with the state up to a time, which it continues with the changes of each round."""

    def __init__(self, world: ReadingWorld, through: int) -> None:
        self.collection, self.through, self.start = world.collection(), through, through
        self.state = balances(self.collection.rows(through)) if through else {}
        self.seen: dict[int, list[tuple[str, int]]] = {}

    def follow(self) -> None:
        stream = self.collection.changes(self.through, timeout=0)
        for t, found in emitted(stream).items():
            assert t > max(self.seen, default=0), "times do not go back"
            self.seen[t] = found
        self.through = stream.through

    def assert_agrees(self, world: ReadingWorld) -> None:
        """Its changes add up to what is read, and what is read is the truth, at every time."""
        assert self.through == world.output.frontier - 1
        for at in range(max(self.start, 1), world.output.frontier):
            expected = counted(world.true_balances(at))
            assert accumulated(self.seen, at, self.state) == expected
            assert counted(balances(self.collection.rows(at))) == expected


@settings(max_examples=60)
@given(
    history=st.lists(ONE_BINDING, min_size=3, max_size=7),
    gaps=st.lists(st.integers(1, 3), min_size=7, max_size=7),
    switches=st.lists(st.integers(0, 6), min_size=2, max_size=2, unique=True),
    late=st.integers(0, 6),
)
def test_19_20_changes_add_up_to_the_rows_across_a_handover_and_a_return(history, gaps, switches, late):
    """A reader that was there all the time, one that comes late, and one that reads everything at the end."""
    world = ReadingWorld()
    t = world.step(1, {"a": 0})
    world.build_second({t: {"a": 0}})
    first = Follower(world, 0)
    readers = [first]
    to_second, back = sorted(switches)
    for number, accounts in enumerate(history):
        t = world.bind(t + gaps[number]).t
        world.write(1, t, accounts)
        world.write(2, t, mended(accounts))
        for rendition in (1, 2):
            world.deliver(rendition)
        if number == to_second:
            world.verify(2)
            world.hand_over(2)
        if number == back and world.output.active.number == 2:
            world.roll_back(1)
        if number == late:
            readers.append(Follower(world, world.output.frontier - 1))
        first.follow()
        assert first.through == world.output.frontier - 1
    for reader in [*readers, Follower(world, 0)]:
        reader.follow()
        reader.assert_agrees(world)
        reader.collection.close()
    assert world.held == []


def test_19_both_handovers_are_crossed_by_one_stream():
    world = ReadingWorld()
    t = world.step(10, {"b": 5, "c": 1})
    world.build_second({t: {"b": 4}})
    with world.collection() as accounts:
        stream = accounts.changes(0, timeout=0)
        world.hand_over(2)
        world.step(20, {"a": 1}, {"a": 1})
        world.roll_back(1)
        world.step(30, {"b": None}, {"b": None})
        found = emitted(stream)
    handed, returned = (one.h for one in world.output.handovers[1:])
    assert {t: sorted(one) for t, one in found.items()} == {
        10: [("b=5", 1), ("c=1", 1)],
        handed: [("b=4", 1), ("b=5", -1), ("c=1", -1)],
        20: [("a=1", 1)],
        returned: [("b=4", -1), ("b=5", 1), ("c=1", 1)],
        30: [("b=5", -1)],
    }


def test_a_binding_without_a_change_is_a_time_without_changes():
    world = ReadingWorld()
    world.step(10, {"a": 1})
    world.step(20, {"a": 1})
    with world.collection() as accounts:
        assert emitted(accounts.changes(0, timeout=0)) == {10: [("a=1", 1)], 20: []}


def test_changes_that_are_left_are_skipped_when_the_stream_goes_on():
    world = ReadingWorld()
    world.step(10, {"a": 1, "b": 2})
    world.step(20, {"a": 3})
    with world.collection() as accounts:
        stream = accounts.changes(0, timeout=0)
        first = next(stream)
        assert next(first).t == 10
        assert stream.through == 0
        assert next(stream).t == 20
        assert (list(first), stream.through) == ([], 10)


def test_until_is_the_last_time_whose_changes_are_given():
    world = ReadingWorld()
    for t in (10, 20, 30):
        world.step(t, {"a": t})
    with world.collection() as accounts:
        assert list(emitted(accounts.changes(0, until=20))) == [10, 20]
        assert list(emitted(accounts.changes(10, until=29))) == [20]
        assert list(emitted(accounts.changes(10, until=10))) == []


def test_an_end_that_is_not_reached_in_time_is_an_error():
    world = ReadingWorld()
    world.step(10, {"a": 1})
    with world.collection() as accounts:
        stream = accounts.changes(0, until=50, timeout=0.01)
        assert next(stream).t == 10
        with pytest.raises(NotYet) as refusal:
            next(stream)
        assert (refusal.value.t, refusal.value.frontier) == (50, 11)


def test_18_a_stream_goes_on_as_bindings_finish(monkeypatch):
    monkeypatch.setattr(changes_module, "POLL", 0.01)
    world = ReadingWorld()
    world.step(10, {"a": 1})
    found: list[int] = []
    came = threading.Semaphore(0)

    def follow() -> None:
        with world.collection() as accounts:
            for one in accounts.changes(0, until=40):
                found.append(one.t)
                came.release()

    reader = threading.Thread(target=follow)
    reader.start()
    assert came.acquire(timeout=10)
    for t in (20, 30):
        world.step(t, {"a": t})
        assert came.acquire(timeout=10)
    world.bind_nothing(41)
    world.deliver(1)
    reader.join(10)
    assert (found, reader.is_alive()) == ([10, 20, 30], False)


def test_a_stream_advances_a_frontier_that_a_dead_delivery_left_behind(monkeypatch):
    monkeypatch.setattr(changes_module, "POLL", 0.01)
    monkeypatch.setattr(changes_module, "ADVANCE", 0.01)
    world = ReadingWorld()
    world.step(10, {"a": 1})
    with world.collection() as accounts:
        stream = accounts.changes(0)
        assert next(stream).t == 10

        def deliver_and_die() -> None:
            world.bind(20)
            world.write(1, 20, {"a": 2})
            world.finish(1)

        timer = threading.Timer(0.05, deliver_and_die)
        timer.start()
        assert next(stream).t == 20
        timer.join()


def test_closing_a_stream_ends_a_wait_in_another_thread():
    world = ReadingWorld()
    world.step(10, {"a": 1})
    stream = world.collection().changes(10)
    ended: list[type[Exception]] = []

    def wait() -> None:
        try:
            next(stream)
        except ReaderClosed as error:
            ended.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    stream.close()
    waiting.join(10)
    assert ended == [ReaderClosed]
    assert world.held == []


def test_23_a_stream_gives_up_what_was_consumed_and_keeps_what_the_next_changes_need(monkeypatch):
    monkeypatch.setattr(changes_module, "MOVE", 0)
    world = ReadingWorld()
    for t in (10, 20, 30):
        world.step(t, {"a": t})
    with world.collection() as accounts:
        stream = accounts.changes(5)
        assert world.held == [6]
        first = next(stream)
        assert (first.t, world.held) == (10, [6])
        second = next(stream)
        assert (second.t, world.held) == (20, [11])
        stream.close()
        assert world.held == []


def test_25_a_stream_before_a_handover_keeps_the_old_rendition(monkeypatch):
    monkeypatch.setattr(changes_module, "MOVE", 0)
    world = ReadingWorld()
    world.step(10, {"a": 1})
    world.build_second()
    h = world.hand_over(2)
    world.step(h + 10, {"a": 2}, {"a": 2})
    with world.collection() as accounts:
        stream = accounts.changes(10)
        with pytest.raises(StillNeeded):
            world.retire_first()
        assert next(stream).t == h
        with pytest.raises(StillNeeded):  # the changes at h need the state before it
            world.retire_first()
        assert next(stream).t == h + 10
        world.retire_first()
        with pytest.raises(Forgotten) as refusal:
            accounts.changes(10)
        assert (refusal.value.t, refusal.value.since) == (10, h)
        assert list(emitted(accounts.changes(h, timeout=0))) == [h + 10]


# Differences between renditions


def other_schema(*columns: tuple[str, str], key: str = "id") -> CollectionSchema:
    found = tuple(Column(name, parse_type(text)) for name, text in columns)
    return CollectionSchema((Column(key, parse_type("text")),), found, 4)


def test_columns_in_another_order_are_the_same_columns():
    world = ReadingWorld()
    world.step(10, {"a": 1})
    rows = world.renditions.rows_of(world.output.rendition(1)).there
    turned = [one._replace(values=one.values[::-1]) for one in rows]
    schemas = ACCOUNTS, other_schema(("balance", "int"), ("owner", "text"))
    assert list(differences(schemas, [0], lambda _: rows, lambda _: turned)) == []


def test_other_columns_make_every_row_another_one():
    world = ReadingWorld()
    world.step(10, {"a": 1, "b": 2})
    rows = world.renditions.rows_of(world.output.rendition(1)).there
    for schema in (
        other_schema(("owner", "text"), ("balance", "bigint")),
        other_schema(("owner", "text"), ("balance", "int"), key="account"),
    ):
        found = list(differences((ACCOUNTS, schema), [0], lambda _: rows, lambda _: rows))
        assert [is_new for _, is_new in found] == [False, False, True, True]


# Many readers


def test_threads_share_a_collection_and_ask_for_older_and_older_times():
    world = ReadingWorld()
    for t in range(10, 200, 10):
        world.step(t, {"a": t})
    accounts = world.collection()
    wrong: list[object] = []

    def read(first: int) -> None:
        for at in range(first, 9, -10):
            row = accounts.get({"id": "a"}, at=at)
            if row is None or row["balance"] != at // 10 * 10:
                wrong.append((at, row))

    threads = [threading.Thread(target=read, args=(first,)) for first in (190, 187, 150, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert world.held == [10]
    accounts.close()
    assert world.held == []
