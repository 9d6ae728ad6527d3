"""How the next binding is cut: fairly, within its limit, and every offset once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.log.model.binding import (
    Binding,
    Offsets,
    Slice,
    cut_slices,
    next_time,
    reached_offsets,
    share_fairly,
)

pytestmark = pytest.mark.unit


# The next cut


def test_a_cut_goes_from_what_is_bound_to_what_is_there():
    slices = cut_slices({("orders", 0): 4}, {("orders", 0): Offsets(0, 9)}, limit=100)
    assert slices == (Slice("orders", 0, 4, 9),)


def test_a_new_partition_starts_at_its_earliest_offset():
    available = {("orders", 0): Offsets(0, 9), ("orders", 1): Offsets(30, 35)}
    assert cut_slices({("orders", 0): 9}, available, limit=100) == (Slice("orders", 1, 30, 35),)


def test_a_cut_is_in_topic_and_partition_order():
    available = {("b", 0): Offsets(0, 1), ("a", 10): Offsets(0, 1), ("a", 2): Offsets(0, 1)}
    cut = cut_slices({}, available, limit=100)
    assert [(s.topic, s.partition) for s in cut] == [("a", 2), ("a", 10), ("b", 0)]


def test_nothing_new_gives_no_slice():
    available = {("orders", 0): Offsets(0, 9), ("orders", 1): Offsets(5, 5)}
    assert cut_slices({("orders", 0): 9}, available, limit=100) == ()


def test_what_the_limit_leaves_is_cut_next():
    available = {("orders", 0): Offsets(0, 25)}
    first = cut_slices({}, available, limit=10)
    second = cut_slices(reached_offsets({}, first), available, limit=10)
    assert (first, second) == ((Slice("orders", 0, 0, 10),), (Slice("orders", 0, 10, 20),))


def test_reached_offsets_keep_the_partitions_that_gave_nothing():
    reached = reached_offsets({("orders", 0): 4, ("orders", 1): 7}, [Slice("orders", 0, 4, 9)])
    assert reached == {("orders", 0): 9, ("orders", 1): 7}


# Sharing a limit


def test_equal_partitions_give_equal_shares():
    waiting = {("a", 0): 100, ("a", 1): 100, ("a", 2): 100}
    assert share_fairly(waiting, 30) == {("a", 0): 10, ("a", 1): 10, ("a", 2): 10}


def test_what_small_partitions_leave_over_goes_to_the_large_ones():
    waiting = {("a", 0): 2, ("a", 1): 1_000, ("a", 2): 1_000}
    assert share_fairly(waiting, 30) == {("a", 0): 2, ("a", 1): 14, ("a", 2): 14}


def test_everything_is_given_when_the_limit_allows_it():
    assert share_fairly({("a", 0): 2, ("a", 1): 28}, 30) == {("a", 0): 2, ("a", 1): 28}


def test_a_limit_that_cannot_be_shared_evenly_is_used_up():
    assert sum(share_fairly({("a", 0): 9, ("a", 1): 9, ("a", 2): 9}, 10).values()) == 10


def test_every_partition_gives_something_when_the_limit_reaches_all():
    waiting = {("a", 0): 1, ("a", 1): 1, ("a", 2): 1_000_000}
    assert share_fairly(waiting, 3) == {("a", 0): 1, ("a", 1): 1, ("a", 2): 1}


def test_a_limit_below_the_number_of_partitions_is_used_up_and_kept():
    available = {("a", partition): Offsets(0, 10) for partition in range(5)}
    assert sum(s.width for s in cut_slices({}, available, limit=2)) == 2


def test_a_quiet_partition_gets_its_turn_beside_a_busy_one_with_a_limit_of_1():
    reached, busy = {}, 100
    for _ in range(10):
        available = {("quiet", 0): Offsets(0, 1), ("busy", 0): Offsets(0, busy)}
        reached = reached_offsets(reached, cut_slices(reached, available, limit=1))
        busy += 10
    assert reached.get(("quiet", 0)) == 1


def test_no_partition_starves_when_the_limit_is_below_their_number():
    reached = {}
    growing = {("a", 0): 1, ("a", 1): 5, ("b", 0): 50}
    for round_ in range(1, 10):
        available = {place: Offsets(0, speed * (round_ + 1)) for place, speed in growing.items()}
        reached = reached_offsets(reached, cut_slices(reached, available, limit=1))
    assert sorted(reached) == [("a", 0), ("a", 1), ("b", 0)]


# Over many bindings

PLACES = st.sampled_from([("a", 0), ("a", 2), ("a", 10), ("b", 0), ("c", 1)])
ARRIVALS = st.lists(st.dictionaries(PLACES, st.integers(0, 20), max_size=4), min_size=1, max_size=4)
EARLIEST = st.dictionaries(PLACES, st.integers(0, 1_000))
FEW = settings(max_examples=20, deadline=None, database=None)


def cut_everything(
    arrivals: list[dict[tuple[str, int], int]], earliest: dict[tuple[str, int], int], limit: int
) -> list[Binding]:
    """Bindings cut while records arrive, and then until nothing is left."""
    bindings: list[Binding] = []
    reached: dict[tuple[str, int], int] = {}
    available: dict[tuple[str, int], Offsets] = {}
    pending = list(arrivals)
    while True:
        for place, count in (pending.pop(0) if pending else {}).items():
            known = available.get(place, Offsets(earliest.get(place, 0), earliest.get(place, 0)))
            available[place] = Offsets(known.earliest, known.latest + count)
        slices = cut_slices(reached, available, limit)
        if slices:
            base = bindings[-1].end + 1 if bindings else 0
            t = next_time(1_000, 0, bindings[-1] if bindings else None)
            bindings.append(Binding(t, base, slices, "r"))
            reached = reached_offsets(reached, slices)
        elif not pending:
            return bindings


@FEW
@given(ARRIVALS, EARLIEST, st.integers(1, 40))
def test_ids_of_consecutive_bindings_are_unique_and_dense(arrivals, earliest, limit):
    bindings = cut_everything(arrivals, earliest, limit)
    ids = [
        binding.id_of(s.topic, s.partition, offset)
        for binding in bindings
        for s in binding.slices
        for offset in range(s.lower, s.upper)
    ]
    assert ids == list(range(len(ids)))


@FEW
@given(ARRIVALS, EARLIEST, st.integers(1, 40))
def test_every_offset_is_bound_exactly_once(arrivals, earliest, limit):
    bindings = cut_everything(arrivals, earliest, limit)
    bound = [
        (s.topic, s.partition, offset)
        for binding in bindings
        for s in binding.slices
        for offset in range(s.lower, s.upper)
    ]
    there = [
        (*place, earliest.get(place, 0) + i)
        for place in {place for arrival in arrivals for place in arrival}
        for i in range(sum(arrival.get(place, 0) for arrival in arrivals))
    ]
    assert sorted(bound) == sorted(there)


@FEW
@given(ARRIVALS, EARLIEST, st.integers(1, 40))
def test_no_binding_is_wider_than_the_limit(arrivals, earliest, limit):
    assert all(binding.width <= limit for binding in cut_everything(arrivals, earliest, limit))


@FEW
@given(ARRIVALS, EARLIEST, st.integers(1, 40))
def test_write_times_grow_with_the_ids_over_all_bindings(arrivals, earliest, limit):
    bindings = cut_everything(arrivals, earliest, limit)
    times = [b.write_time(id_) for b in bindings for id_ in range(b.base, b.end + 1)]
    assert times == sorted(set(times))


@FEW
@given(st.dictionaries(PLACES, st.integers(1, 1_000), min_size=1), st.integers(1, 2_000))
def test_a_share_is_never_more_than_what_waits_and_the_limit_is_used_up(waiting, limit):
    shares = share_fairly(waiting, limit)
    assert all(shares.get(place, 0) <= waiting[place] for place in waiting)
    assert sum(shares.values()) == min(limit, sum(waiting.values()))
