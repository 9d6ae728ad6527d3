"""The cache of the tail: a client that has one answers as a client without, and reads less."""

import threading
from contextlib import suppress

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.support.journal_samples import TOPIC
from tests.support.memory_client import World

from tidemark import Event, Journal
from tidemark.client.errors import BadInput, ClientError, TailLost, TailUnreadable
from tidemark.client.tail import chunk
from tidemark.client.tail.head_cache import CacheBounds
from tidemark.connections import CassandraConnection, KafkaConnection
from tidemark.journal.errors import Undecodable
from tidemark.kafka.errors import KafkaFailure

pytestmark = pytest.mark.unit

LARGE = CacheBounds()
WORDS = ["A{}", "A{}", "A{},{}", "D{}", "P", "M", "-", "N", "A{}!", "j:A1", "j:A2", "j:D1", "j:P", "j:M"]

sent = st.tuples(st.just("send"), st.sampled_from(WORDS), st.integers(1, 6))
read = st.one_of(
    st.tuples(st.just("read"), st.sampled_from("kj"), st.sampled_from([1, 1, 1, 3])),
    st.tuples(st.just("pointer"), st.sampled_from("kj")),
)
replicated = st.one_of(
    st.tuples(st.just("replicate"), st.integers(0, 6)),
    st.tuples(st.just("run")),
    st.tuples(st.just("land"), st.integers(1, 4)),
)
lost = st.one_of(
    st.tuples(st.just("remove"), st.integers(0, 4)),
    st.tuples(st.just("cut"), st.integers(0, 5)),
    st.tuples(st.just("create again")),
)
steps = st.integers(0, 11).flatmap(
    lambda kind: sent if kind < 6 else read if kind < 9 else replicated if kind < 11 else lost
)


def happen(world: World, step: tuple) -> None:
    """One step of a history, except reads. What Kafka cuts off was never replicated."""
    pointed = world.journal.pointers.get((TOPIC, 0), -1) + 1
    match step:
        case ("send", text, number):
            world.send_words(text.format(number, number + 1))
        case ("replicate", behind) if not world.pending:
            world.replicate(max(pointed, len(world.records) - behind))
        case ("run",) if not world.pending:
            world.begin_run()
        case ("land", writes):
            world.land(min(writes, len(world.pending)))
        case ("remove", offsets):
            world.begin = min(world.begin + offsets, len(world.records))
        case ("cut", records) if not world.pending:
            world.cut(max(pointed, world.begin, len(world.records) - records))
        case ("create again",) if not world.pending:
            world.create_again()


def answer(journal: Journal, step: tuple) -> object:
    try:
        if step[0] == "pointer":
            return journal.pointer(step[1])
        return [(one.seq_nr, one.offset, one.content) for one in journal.read(*step[1:])]
    except ClientError as error:
        return type(error)


@settings(max_examples=150, deadline=None)
@given(
    history=st.lists(steps, min_size=12, max_size=40),
    bounds=st.sampled_from([LARGE, CacheBounds(600, 10**6), CacheBounds(10**6, 3), CacheBounds(10**6, 1)]),
    chunk_records=st.sampled_from([1, 2, 1_024]),
    largest_value=st.sampled_from([0, 40, 16_384]),
    segment_size=st.sampled_from([2, 10]),
)
def test_a_client_with_a_cache_answers_as_one_without(
    history, bounds, chunk_records, largest_value, segment_size
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk, "MOST_RECORDS", chunk_records)
        patch.setattr(chunk, "LARGEST_VALUE", largest_value)
        world = World("", segment_size)
        cached = world.client(bounds)
        for step in history:
            if step[0] in ("read", "pointer"):
                expected = answer(world.client(), step)
                assert answer(cached, step) == expected
                event(expected.__name__ if isinstance(expected, type) else "whole")
            else:
                with suppress(Undecodable):  # replication stops there
                    happen(world, step)
            info = cached.cache_info()
            assert info.records <= bounds.records
            assert info.bytes <= bounds.size
        for name in ("hits", "evicted", "discarded"):
            event(f"{name}: {getattr(info, name) > 0}")


# What is read again


def given_read(history: str, bounds: CacheBounds = LARGE) -> tuple[World, Journal]:
    """A client that has read this history once."""
    world = World(history)
    client = world.client(bounds)
    list(client.read("k"))
    world.handed_out = 0
    return world, client


def test_a_second_read_reads_its_mark_and_the_record_before_it() -> None:
    world, client = given_read("A1 j:A1 A2 j:A2 A3")
    assert [one.seq_nr for one in client.read("k")] == [1, 2, 3]
    assert [one.seq_nr for one in client.read("j")] == [1, 2]
    assert world.handed_out == 4
    assert client.cache_info()[:3] == (2, 1, 5)


def test_records_of_others_are_not_decoded() -> None:
    _, client = given_read("A1 j:? j:A1! A2")
    assert [one.seq_nr for one in client.read("k")] == [1, 2]
    with pytest.raises(ClientError):
        client.pointer("j")


def test_marks_take_no_memory() -> None:
    _, client = given_read("A1")
    for _ in range(100):
        client.pointer("k")
    assert client.cache_info().records == 1


def test_what_the_tables_have_is_dropped() -> None:
    world, client = given_read("A1 A2 A3")
    world.replicate()
    world.send_words("A4")
    assert [one.seq_nr for one in client.read("k")] == [1, 2, 3, 4]
    world.replicate()
    client.mark("k")
    assert [one.seq_nr for one in client.read("k")] == [1, 2, 3, 4]
    assert client.cache_info().records == 0


def test_records_that_do_not_fit_are_read_from_kafka() -> None:
    _, client = given_read("A1 A2 A3 A4 A5 A6", CacheBounds(10**6, 4))
    assert client.cache_info().records <= 4
    assert [one.seq_nr for one in client.read("k")] == [1, 2, 3, 4, 5, 6]
    assert client.cache_info().hits == 0


def test_a_value_that_is_too_large_is_read_from_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk, "LARGEST_VALUE", 20)
    world, client = given_read("j:A1 A1 A2 j:A2 j:A3")
    assert [one.payload for one in client.read("k")] == [{"n": 1}, {"n": 2}]
    assert world.handed_out == 4  # two of them to catch up
    assert client.cache_info().hits == 1


# What makes it begin anew


def test_a_log_that_was_cut_and_written_again_is_read_anew() -> None:
    """The new record has the same offset, key and timestamp: only the leader's epoch differs."""
    world, client = given_read("A1 A2,3")
    world.cut(1)
    world.send_words("A2 A3 A4 M M")
    assert [one.seq_nr for one in client.read("k")] == [1, 2, 3, 4]
    assert [one.offset for one in client.read("k")] == [0, 1, 2, 3]
    assert client.cache_info().discarded == 1


def test_another_topic_of_the_name_is_read_anew() -> None:
    world, client = given_read("A1 A2")
    world.create_again()
    world.send_words("M M A7 M M")
    assert [one.seq_nr for one in client.read("k")] == [7]
    assert client.cache_info().discarded == 1


def test_another_topic_is_told_by_its_id_even_if_it_has_the_same_last_record() -> None:
    world, client = given_read("A1 A2")
    last = world.records[2]
    world.create_again()
    world.send_words("A7 A8")
    world.records.append(last)
    assert [one.seq_nr for one in client.read("k")] == [7, 8]


def test_what_kafka_has_removed_is_not_answered_from_memory() -> None:
    world, client = given_read("A1 A2 A3")
    world.begin = 1
    with pytest.raises(TailLost):
        list(client.read("k"))


def test_without_topic_ids_nothing_is_kept() -> None:
    world = World("A1")
    world.topic_id = None
    client = world.client(LARGE)
    assert [one.seq_nr for one in client.read("k")] == [1]
    assert client.cache_info() == (0,) * 6


def test_a_read_that_fails_half_way_keeps_what_it_has_read() -> None:
    world = World("A1 A2 " + "j:A1 " * 600)
    client = world.client(LARGE)
    world.fails_at = 590
    with pytest.raises(TailUnreadable, match="no answer"):
        list(client.read("k"))
    kept = client.cache_info().records
    assert 0 < kept < 590
    world.fails_at, world.handed_out = None, 0
    assert [one.seq_nr for one in client.read("k")] == [1, 2]
    assert world.handed_out < 604 - kept + 3


# Threads


def test_threads_that_share_a_client_see_everything_that_was_acknowledged_before() -> None:
    world = World()
    client = world.client(CacheBounds(10**6, 40))
    wrong: list[object] = []

    def read() -> None:
        for _ in range(40):
            before = len(sent)
            found = [one.seq_nr for one in client.read("k")]
            if found != list(range(1, len(found) + 1)) or len(found) < before:
                wrong.append((before, found))

    sent: list[int] = []
    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for number in range(1, 61):
        client.append("k", [Event.text(number, "x")])
        sent.append(number)
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert client.cache_info().hits > 0


def test_a_read_that_is_blocked_by_another_one_reads_by_itself() -> None:
    _, client = given_read("A1 A2")
    cache = client._tail._cache
    cache._patience = 0.01
    (held,) = cache._partitions.values()
    with held.turn:
        assert [one.seq_nr for one in client.read("k")] == [1, 2]


@pytest.mark.parametrize("bounds", [{"cache_bytes": -1}, {"cache_records": "many"}, {"cache_bytes": 1.5}])
def test_bounds_that_are_none(bounds) -> None:
    ends = {"kafka": KafkaConnection(servers="x:1"), "cassandra": CassandraConnection(hosts=("x",))}
    with pytest.raises(BadInput, match=next(iter(bounds))):
        Journal("orders", **ends, **bounds)


def test_a_failure_of_kafka_names_the_place() -> None:
    world = World("A1 A2")
    world.fails_at = 1
    with pytest.raises(TailUnreadable) as raised:
        list(world.client(LARGE).read("k"))
    assert isinstance(raised.value.__cause__, KafkaFailure)
