"""The one clock: its units, and how people read its times."""

import time

import pytest

from tidemark.clock import SECOND, utc_text, utc_time_text, wall_clock, wall_clock_millis

pytestmark = pytest.mark.unit


def test_the_wall_clock_counts_microseconds():
    before = int(time.time()) * SECOND
    assert before <= wall_clock() <= before + 60 * SECOND


def test_milliseconds_are_the_same_time():
    assert 0 <= wall_clock() // 1000 - wall_clock_millis() + 1 <= 60_000


def test_times_are_told_in_utc():
    assert utc_text(1_767_225_599_999_999) == "2025-12-31 23:59:59 UTC"
    assert utc_time_text(1_767_225_599_999_999) == "23:59:59 UTC"
