"""The position: before the oldest item that is not done."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.oplog.consumer.in_flight import InFlight, Position

pytestmark = pytest.mark.unit


def given_in_flight(*ids: str, most: int = 100) -> tuple[InFlight, list[int]]:
    in_flight = InFlight(Position("start"), most)
    return in_flight, [in_flight.hand_out(each) for each in ids]


def test_nothing_done_is_before_the_first():
    in_flight, _ = given_in_flight("a", "b")
    assert in_flight.position == Position("start")


def test_the_oldest_done_moves_the_position_behind_it():
    in_flight, (first, _) = given_in_flight("a", "b")
    in_flight.done(first)
    assert in_flight.position == Position("a")


def test_a_later_one_done_first_moves_nothing():
    in_flight, (_, second) = given_in_flight("a", "b")
    in_flight.done(second)
    assert in_flight.position == Position("start")


def test_the_last_one_missing_moves_the_position_behind_all():
    in_flight, (first, second) = given_in_flight("a", "b")
    in_flight.done(second)
    in_flight.done(first)
    assert in_flight.position == Position("b")


def test_items_with_the_same_id_are_told_apart():
    in_flight, (first, second, third) = given_in_flight("a", "a", "b")
    in_flight.done(first)
    in_flight.done(third)
    assert in_flight.position == Position("a")
    in_flight.done(second)
    assert in_flight.position == Position("b")


def test_a_checkpoint_moves_the_position_when_nothing_is_in_flight():
    in_flight, (first,) = given_in_flight("a")
    in_flight.passed("c")
    assert in_flight.position == Position("start")
    in_flight.done(first)
    assert in_flight.position == Position("c")


def test_an_item_without_an_id_keeps_the_position_before_it():
    in_flight = InFlight(Position("start"), 10)
    number = in_flight.hand_out(None)
    in_flight.passed("a")
    assert in_flight.position == Position("start")
    in_flight.done(number)
    assert in_flight.position == Position("a")


def test_done_twice_is_done_once():
    in_flight, (first, _) = given_in_flight("a", "b")
    in_flight.done(first)
    in_flight.done(first)
    assert in_flight.position == Position("a")


def test_a_reset_is_the_position_until_it_is_done():
    in_flight, (first, _) = given_in_flight("a", "b")
    reset = in_flight.hand_out_reset("r")
    later = in_flight.hand_out("s")
    in_flight.done(first)
    in_flight.done(later)
    assert in_flight.position == Position("r", reset=True)
    in_flight.done(reset)
    assert in_flight.position == Position("s")


def test_a_new_connection_continues_after_the_newest_item():
    in_flight, _ = given_in_flight("a", "b")
    assert in_flight.received == "b"


def test_an_item_of_another_consumer_changes_nothing():
    in_flight, _ = given_in_flight("a")
    other, (number,) = given_in_flight("x")
    in_flight.done(number)
    assert in_flight.position == Position("start")
    assert len(other) == 1


def test_room_comes_back_when_the_oldest_is_done():
    in_flight, (first, second) = given_in_flight("a", "b", most=2)
    in_flight.done(second)
    assert not in_flight.has_room
    in_flight.done(first)
    assert in_flight.has_room


@given(st.integers(1, 30), st.randoms())
def test_the_position_is_never_ahead_of_what_is_done(count, random):
    in_flight = InFlight(Position("0"), 100)
    numbers = [in_flight.hand_out(str(index + 1)) for index in range(count)]
    waiting = list(range(count))
    random.shuffle(waiting)
    while waiting:
        in_flight.done(numbers[waiting.pop()])
        assert in_flight.position.event_id == str(min(waiting, default=count))


def test_done_by_many_threads_loses_none():
    in_flight, numbers = given_in_flight(*map(str, range(4_000)), most=5_000)
    threads = [
        threading.Thread(target=lambda part=part: [in_flight.done(each) for each in numbers[part::8]])
        for part in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert in_flight.position == Position("3999")
    assert len(in_flight) == 0
