"""Latency figures: percentiles from bins of a fixed number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.app.follow.figures import LEAST, RATIO, Figures, LatencyHistogram, latencies

pytestmark = pytest.mark.unit


def histogram(*seconds: float) -> LatencyHistogram:
    found = LatencyHistogram()
    found.add(np.array(seconds))
    return found


def test_without_records_there_is_no_percentile():
    assert histogram().percentile(0.5) is None


@given(st.lists(st.floats(LEAST, 3_600), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_percentile_is_never_too_low_and_at_most_one_bin_too_high(seconds, share):
    exact = sorted(seconds)[max(1, int(np.ceil(share * len(seconds)))) - 1]
    found = histogram(*seconds).percentile(share)
    assert exact <= found * (1 + 1e-9)
    assert found <= exact * RATIO * (1 + 1e-9)


def test_a_producer_whose_clock_is_ahead_counts_as_no_latency():
    assert histogram(-3.0).percentile(1) == LEAST


def test_memory_does_not_grow_with_what_is_counted():
    once, often = histogram(1.0), histogram(*([1.0] * 100_000))
    assert once.counts.nbytes == often.counts.nbytes


def test_latencies_from_timestamps_in_ms_and_a_time_in_microseconds():
    assert latencies([1_000, 2_500], 4_000_000).tolist() == [3.0, 1.5]


def test_records_without_a_timestamp_are_left_out():
    assert latencies([-1, 1_000], 4_000_000).tolist() == [3.0]


def test_the_figures_of_a_minute_and_of_the_run():
    minute, total = Figures(), Figures()
    minute.note(2, np.array([1.0, 3.0]), 0.4)
    minute.note_idle()
    total.add(minute)
    found = total.to_dict()
    assert (found["rounds"], found["idle"], found["records"], found["round_seconds"]) == (2, 1, 2, 0.4)
    assert found["p99"] == pytest.approx(3.0, rel=RATIO - 1)


def test_lag_is_the_age_of_the_oldest_record_of_the_last_round_and_nothing_when_idle():
    figures = Figures()
    figures.note(2, np.array([1.0, 3.0]), 0.4)
    assert figures.lag == 3.0
    figures.note_idle()
    assert figures.lag == 0.0
