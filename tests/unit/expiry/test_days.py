"""Which days a run covers, and when one is done with."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.expiry.days import (
    WaitsFor,
    day_end,
    days_asked_for,
    days_due,
    days_ended_between,
    days_to_ask,
    local_date,
    waits_for,
)
from tidemark.expiry.errors import BadDays

pytestmark = pytest.mark.unit

ZONES = [
    "UTC",
    "Europe/Prague",
    "America/Sao_Paulo",
    "America/Havana",
    "America/St_Johns",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "Africa/Cairo",
    "America/Toronto",
]
PRAGUE = ZoneInfo("Europe/Prague")
HOUR = 3_600_000_000


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("zone", "day", "ended"),
    [
        pytest.param("UTC", "2026-11-17", "2026-11-18T00:00", id="UTC"),
        pytest.param("Europe/Prague", "2026-11-17", "2026-11-17T23:00", id="east of it"),
        pytest.param("America/New_York", "2026-11-17", "2026-11-18T05:00", id="west of it"),
        pytest.param("Europe/Prague", "2026-03-29", "2026-03-29T22:00", id="a day of 23 hours"),
        pytest.param("Europe/Prague", "2026-10-25", "2026-10-25T23:00", id="a day of 25 hours"),
        pytest.param("America/Sao_Paulo", "2018-11-03", "2018-11-04T03:00", id="no midnight after it"),
        pytest.param("America/Havana", "2026-10-31", "2026-11-01T04:00", id="two midnights, both later"),
        pytest.param("America/St_Johns", "2010-11-06", "2010-11-07T03:30", id="it came back after midnight"),
        pytest.param("Pacific/Apia", "2011-12-29", "2011-12-30T10:00", id="before a day that never was"),
        pytest.param("Pacific/Apia", "2011-12-30", "2011-12-30T10:00", id="a day that never was"),
        pytest.param("America/Toronto", "1919-03-30", "1919-03-31T04:30", id="clocks jumped over midnight"),
    ],
)
def test_when_a_day_is_over(zone: str, day: str, ended: str) -> None:
    assert day_end(date.fromisoformat(day), ZoneInfo(zone)) == at(ended)


@given(
    st.sampled_from(ZONES),
    st.dates(date(1990, 1, 1), date(2037, 12, 1)),
)
def test_a_day_that_is_over_never_comes_back(zone: str, day: date) -> None:
    there = ZoneInfo(zone)
    ended = day_end(day, there)
    assert local_date(ended - 1, there) <= day
    assert all(local_date(ended + quarter * HOUR // 4, there) > day for quarter in range(4 * 36))


@given(
    st.sampled_from(ZONES),
    st.lists(st.datetimes(datetime(2009, 1, 1), datetime(2012, 6, 1)), min_size=3, max_size=8, unique=True),
)
def test_consecutive_intervals_cover_every_day_once(zone: str, borders: list[datetime]) -> None:
    there = ZoneInfo(zone)
    moments = sorted(int(one.replace(tzinfo=UTC).timestamp() * 1_000_000) for one in borders)
    pieces = [days_ended_between(*pair, there) for pair in pairwise(moments)]
    whole = days_ended_between(moments[0], moments[-1], there)
    assert [day for piece in pieces for day in piece] == list(whole)
    assert all(later - day == timedelta(days=1) for day, later in pairwise(whole))


@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        pytest.param("2026-11-16T00:00", "2026-11-17T00:00", [16], id="a day of UTC has one evening"),
        pytest.param("2026-11-16T23:00", "2026-11-17T23:00", [17], id="cut where days are"),
        pytest.param("2026-11-16T12:00", "2026-11-16T13:00", [], id="an hour in the middle"),
        pytest.param("2026-11-16T22:00", "2026-11-16T23:00", [16], id="the hour that ends it"),
        pytest.param("2026-11-13T23:00", "2026-11-16T23:00", [14, 15, 16], id="several days"),
    ],
)
def test_the_days_of_an_interval_in_prague(start: str, end: str, days: list[int]) -> None:
    assert days_ended_between(at(start), at(end), PRAGUE) == tuple(date(2026, 11, day) for day in days)


NOW = at("2026-11-17T23:30")  # the 18th in Prague


@pytest.mark.parametrize(
    ("first", "last", "days"),
    [
        pytest.param(None, None, [17], id="the last one that is over"),
        pytest.param(15, None, [15, 16, 17], id="from one on"),
        pytest.param(None, 12, [12], id="one"),
        pytest.param(11, 13, [11, 12, 13], id="a range"),
        pytest.param(17, 17, [17], id="over since half an hour"),
    ],
)
def test_days_that_a_person_names(first: int | None, last: int | None, days: list[int]) -> None:
    named = [None if day is None else date(2026, 11, day) for day in (first, last)]
    assert days_asked_for(*named, NOW, PRAGUE) == tuple(date(2026, 11, day) for day in days)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        pytest.param("2026-11-18", None, "2026-11-18 is not over in Europe/Prague; 2026-11-17", id="today"),
        pytest.param("2026-11-01", "2026-11-18", "2026-11-18 is not over", id="up to today"),
        pytest.param("2026-11-03", "2026-11-02", "2026-11-03 is later than 2026-11-02", id="upside down"),
        pytest.param("0206-11-03", None, "more than 10,000 days", id="a slip of the pen"),
    ],
)
def test_days_that_are_refused(first: str, last: str | None, said: str) -> None:
    with pytest.raises(BadDays) as refused:
        days_asked_for(date.fromisoformat(first), last and date.fromisoformat(last), NOW, PRAGUE)
    assert said in str(refused.value)
    assert str(refused.value).endswith("Nothing was sent.")


def test_unfinished_days_are_asked_again_each_once() -> None:
    first, second, third = (date(2026, 11, day) for day in (1, 2, 3))
    assert days_to_ask([third, second], [second, first]) == (first, second, third)


@pytest.mark.parametrize(
    ("upper", "waiting", "left", "why"),
    [
        pytest.param(100, [], 0, None, id="done with"),
        pytest.param(99, [], 0, WaitsFor.SOURCE, id="something of the day may still be bound"),
        pytest.param(150, [99, 120], 0, WaitsFor.WRITER, id="a binding of the day is not written"),
        pytest.param(150, [100, 120], 0, None, id="what is not written is of later days"),
        pytest.param(150, [], 1, WaitsFor.ENTITIES, id="one was left alone"),
    ],
)
def test_when_a_day_is_done_with(upper: int, waiting: list[int], left: int, why: WaitsFor | None) -> None:
    assert waits_for(100, upper, waiting, left) is why


@pytest.mark.parametrize(
    ("through", "days"),
    [
        pytest.param(None, [16], id="nothing is known"),
        pytest.param(15, [16], id="nothing missed"),
        pytest.param(12, [13, 14, 15, 16], id="no run for three days"),
        pytest.param(16, [16], id="the same run again"),
    ],
)
def test_a_scheduled_run_asks_the_days_that_none_was_there_for(through: int | None, days: list[int]) -> None:
    interval = at("2026-11-15T23:00"), at("2026-11-16T23:00")
    known = None if through is None else date(2026, 11, through)
    assert days_due(*interval, known, PRAGUE) == tuple(date(2026, 11, day) for day in days)


@pytest.mark.parametrize(
    ("begun", "days"),
    [
        pytest.param("2026-11-13T10:00", [13, 14, 15, 16], id="long before"),
        pytest.param("2026-11-16T10:00", [16], id="in the interval"),
    ],
)
def test_the_first_run_of_all_asks_every_day_since_the_log_has_begun(begun: str, days: list[int]) -> None:
    interval = at("2026-11-15T23:00"), at("2026-11-16T23:00")
    assert days_due(*interval, None, PRAGUE, at(begun)) == tuple(date(2026, 11, day) for day in days)


def test_an_hourly_run_asks_missed_days_in_any_hour() -> None:
    interval = at("2026-11-16T10:00"), at("2026-11-16T11:00")
    assert days_due(*interval, date(2026, 11, 13), PRAGUE) == (date(2026, 11, 14), date(2026, 11, 15))


def test_more_days_than_can_be_meant_are_refused() -> None:
    with pytest.raises(BadDays, match="since 1995-01-01 more than 10,000 days"):
        days_due(at("2026-11-16T10:00"), at("2026-11-16T11:00"), date(1995, 1, 1), PRAGUE)
