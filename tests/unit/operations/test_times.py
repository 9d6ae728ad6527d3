"""Times of operations: which texts are times, how they are cut, and how they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.operations.errors import BadOperation
from tidemark.operations.times import EARLIEST, LATEST, milliseconds, rfc3339

pytestmark = pytest.mark.unit

MOMENT = 1_383_885_521_167
"""2013-11-08T04:38:41.167Z"""


@pytest.mark.parametrize(
    "text",
    [
        "2013-11-08T04:38:41.167Z",
        "2013-11-08t04:38:41.167z",
        "2013-11-08 04:38:41.167Z",
        "2013-11-08T05:38:41.167+01:00",
        "2013-11-08T05:38:41.167+0100",
        "2013-11-07T23:08:41.167-05:30",
        "2013-11-08T04:38:41.167-00:00",
    ],
)
def test_S14_R30_one_instant_has_many_texts(text):
    assert milliseconds(text) == MOMENT


@pytest.mark.parametrize("digits", ["1670", "16799", "167456", "1679999", "167999999", "1679996" + "9" * 40])
def test_S13_further_digits_are_cut_and_never_rounded(digits):
    assert milliseconds(f"2013-11-08T04:38:41.{digits}Z") == MOMENT
    assert milliseconds(f"2013-11-08T05:38:41.{digits}+01:00") == MOMENT


def test_a_time_before_1970_is_cut_towards_the_past():
    assert milliseconds("1969-12-31T23:59:59.9999999Z") == -1
    assert milliseconds("1969-12-31T23:59:59Z") == -1_000
    assert rfc3339(-1) == "1969-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1383885521",
        "2013-11-08",
        "2013-W45-5T04:38:41Z",
        "20131108T043841Z",
        "2013-11-08T04:38Z",
        "2013-11-08T04:38:41.Z",
        "2013-11-08T04:38:41,167Z",
        "2013-11-08T04:38:41+01",
        "2013-11-08T04:38:41+24:00",
        "2013-11-08T24:00:00Z",
        "2013-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "\uff12013-11-08T04:38:41Z",
        " 2013-11-08T04:38:41Z",
        "2013-11-08T04:38:41Z\n",
        "2013-11-08T04:38:41.167167167",
    ],
)
def test_other_texts_are_no_times(text):
    with pytest.raises(BadOperation, match="its `timestamp`"):
        milliseconds(text)


def test_a_leap_second_is_refused():
    with pytest.raises(BadOperation, match="not a time by RFC 3339"):
        milliseconds("2016-12-31T23:59:60Z")


def test_a_time_without_an_offset_is_refused_with_the_way_out():
    with pytest.raises(BadOperation, match="has no offset; write `Z` for UTC"):
        milliseconds("2013-11-08T04:38:41.167")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_a_time_that_could_not_be_written_in_utc_is_refused(text):
    with pytest.raises(BadOperation, match="not within the years 1 to 9999 of UTC"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (EARLIEST, "0001-01-01T00:00:00.000Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (MOMENT, "2013-11-08T04:38:41.167Z"),
        (LATEST, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_written_in_utc_with_milliseconds(ms, text):
    assert rfc3339(ms) == text
    assert milliseconds(text) == ms


def test_the_last_instant_is_not_rounded_out_of_the_calendar():
    assert milliseconds("9999-12-31T23:59:59.9999999Z") == LATEST


@given(st.integers(EARLIEST, LATEST))
def test_every_time_is_read_as_it_was_written(ms):
    assert milliseconds(rfc3339(ms)) == ms
