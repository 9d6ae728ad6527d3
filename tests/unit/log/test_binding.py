"""Bindings: which ids they own, when their messages were written, and how the next one is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.samples import given_binding

from tidemark.log.binding import (
    Binding,
    Offsets,
    Slice,
    cut_slices,
    next_time,
    reached_offsets,
    share_fairly,
)
from tidemark.log.errors import BadBinding, LogError

pytestmark = pytest.mark.unit

THREE_SLICES = given_binding(
    1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 0, 0, 2), ("orders", 1, 7, 8)
)


# Ids and write times


def test_ids_run_through_the_slices_in_topic_and_partition_order():
    ids = {
        (s.topic, s.partition, offset): THREE_SLICES.id_of(s.topic, s.partition, offset)
        for s in THREE_SLICES.slices
        for offset in range(s.lower, s.upper)
    }
    assert ids == {
        ("invoices", 0, 10): 100,
        ("invoices", 0, 11): 101,
        ("invoices", 0, 12): 102,
        ("orders", 0, 0): 103,
        ("orders", 0, 1): 104,
        ("orders", 1, 7): 105,
    }


def test_a_binding_is_as_wide_as_its_slices_together():
    assert [s.width for s in THREE_SLICES.slices] == [3, 2, 1]
    assert THREE_SLICES.width == 6


def test_the_end_is_the_last_id_owned():
    assert THREE_SLICES.end == 105


def test_the_end_of_one_record_is_its_id():
    assert given_binding(5, 0, ("orders", 0, 41, 42)).end == 0


def test_shifts_lead_from_an_offset_to_its_id():
    assert THREE_SLICES.shifts == {("invoices", 0): 90, ("orders", 0): 103, ("orders", 1): 98}


def test_a_write_time_is_t_and_the_place_within_the_binding():
    assert [THREE_SLICES.write_time(id_) for id_ in (100, 103, 105)] == [1_000_000, 1_000_003, 1_000_005]


def test_ids_beyond_32_bits_stay_exact():
    binding = given_binding(1_763_000_000_000_000, 2**53, ("orders", 0, 2**40, 2**40 + 3))
    assert binding.id_of("orders", 0, 2**40 + 2) == 9_007_199_254_740_994
    assert binding.write_time(2**53 + 2) == 1_763_000_000_000_002


def test_partition_2_comes_before_partition_10():
    binding = given_binding(1, 0, ("orders", 2, 0, 5), ("orders", 10, 0, 5))
    assert binding.id_of("orders", 10, 0) == 5


def test_a_partition_that_is_not_bound_has_no_ids():
    with pytest.raises(KeyError):
        THREE_SLICES.id_of("orders", 2, 0)


# Refusals


@pytest.mark.parametrize(("lower", "upper"), [(5, 5), (5, 4), (-1, 3)])
def test_a_slice_that_is_no_range_of_offsets_is_refused(lower, upper):
    with pytest.raises(BadBinding, match=rf"orders/0: \[{lower}, {upper}\) is not a range of offsets"):
        Slice("orders", 0, lower, upper)


@pytest.mark.parametrize(
    "slices",
    [
        pytest.param([], id="none at all"),
        pytest.param([("orders", 0, 0, 1), ("invoices", 0, 0, 1)], id="topics out of order"),
        pytest.param([("orders", 1, 0, 1), ("orders", 0, 0, 1)], id="partitions out of order"),
        pytest.param([("orders", 0, 0, 1), ("orders", 0, 1, 2)], id="a partition twice"),
    ],
)
def test_slices_must_be_there_once_each_and_in_order(slices):
    with pytest.raises(BadBinding, match="A binding at 7 needs slices in"):
        given_binding(7, 0, *slices)


def test_a_refused_binding_is_an_error_of_the_log():
    assert issubclass(BadBinding, LogError)


# The row in the control plane


def test_a_binding_comes_back_from_its_row():
    assert Binding.from_json(THREE_SLICES.to_json()) == THREE_SLICES


def test_a_row_keeps_what_a_run_id_may_hold():
    binding = given_binding(1, 0, ("orders", 0, 0, 1), run_id='manual__2026-01-01T00:00:00+00:00 "é"')
    assert Binding.from_json(binding.to_json()).run_id == 'manual__2026-01-01T00:00:00+00:00 "é"'


def test_a_row_with_slices_out_of_order_is_refused():
    row = '{"t": 7, "base": 0, "slices": [["orders", 1, 0, 1], ["orders", 0, 0, 1]], "run_id": "r"}'
    with pytest.raises(BadBinding):
        Binding.from_json(row)


# t


def test_the_first_t_is_now():
    assert next_time(now=1_000, upper=0, previous=None) == 1_000


def test_t_is_never_below_upper():
    assert next_time(now=1_000, upper=1_500, previous=None) == 1_500


def test_t_is_past_every_write_time_of_the_binding_before():
    previous = given_binding(1_000, 0, ("orders", 0, 0, 50))
    assert next_time(now=1_010, upper=1_001, previous=previous) == 1_051


def test_a_clock_that_went_on_far_enough_gives_t_itself():
    previous = given_binding(1_000, 0, ("orders", 0, 0, 50))
    assert next_time(now=1_051, upper=1_001, previous=previous) == 1_051


def test_upper_counts_when_it_is_past_the_binding_before():
    previous = given_binding(1_000, 0, ("orders", 0, 0, 50))
    assert next_time(now=900, upper=2_000, previous=previous) == 2_000


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
