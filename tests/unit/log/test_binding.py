"""Bindings: which ids they own, when their messages were written, and the row that keeps them."""

import pytest
from tests.support.log_samples import given_binding

from tidemark.log.errors import BadBinding, LogError
from tidemark.log.model.binding import Binding, Slice, next_time

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


def test_a_row_keeps_the_ids_of_the_topics():
    topic_ids = {"invoices": "b7f1", "orders": "03ac"}
    binding = given_binding(1, 0, ("invoices", 0, 0, 1), ("orders", 0, 0, 1), topic_ids=topic_ids)
    assert Binding.from_json(binding.to_json()).topic_ids == topic_ids


def test_a_row_from_before_ids_were_kept_has_none():
    row = '{"t": 7, "base": 0, "slices": [["orders", 0, 0, 1]], "run_id": "r"}'
    assert Binding.from_json(row) == given_binding(7, 0, ("orders", 0, 0, 1), run_id="r", topic_ids={})


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


# Offsets at a position


@pytest.mark.parametrize(
    ("position", "offsets"),
    [
        pytest.param(99, {}, id="before the binding"),
        pytest.param(101, {("invoices", 0): 11}, id="inside the first slice"),
        pytest.param(103, {("invoices", 0): 12, ("orders", 0): 0}, id="inside the second"),
        pytest.param(
            105, {("invoices", 0): 12, ("orders", 0): 1, ("orders", 1): 7}, id="at the end of the binding"
        ),
        pytest.param(500, {("invoices", 0): 12, ("orders", 0): 1, ("orders", 1): 7}, id="far beyond it"),
    ],
)
def test_a_position_is_an_offset_of_every_partition_it_has_passed(position, offsets):
    assert THREE_SLICES.offsets_at(position) == offsets
