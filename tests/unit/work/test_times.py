"""Worked examples 3.3 (expiry), 3.4 (order) and 3.5 (buckets), and the statements behind them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.work_samples import E0, HOUR_LIMIT, at, given_packet, given_running, with_request

from tidemark.work.model.buckets import Bucket, BucketState, Period, begins, bucket_of, ends, next_state
from tidemark.work.model.decide import Claim, decide
from tidemark.work.model.decision import Outcome
from tidemark.work.model.due_times import Appointment, appointment, order, serves
from tidemark.work.model.entry import Hint
from tidemark.work.model.merge import merge
from tidemark.work.model.rules import is_expired

pytestmark = pytest.mark.unit

EXPIRING = with_request(E0, expires=at("11:00:00"), process=at("10:00:00"))
PACKET = given_packet("10:59:00", "0", 180, "10:59:00", "rev8")
SETTLE = 60_000


@pytest.mark.parametrize(
    ("now", "is_there"), [("10:59:59", True), ("11:00:00", True), ("11:00:00.999", True), ("11:00:01", False)]
)
def test_3_3_expiry_is_seen_at_once_by_every_reader(now, is_there):
    assert is_expired(EXPIRING.request, at(now)) is not is_there
    claimed = decide(EXPIRING, Claim("a", "w1"), at(now), HOUR_LIMIT)
    assert (claimed.outcome is Outcome.CLAIMED) is is_there
    inserted = merge(EXPIRING, PACKET, at(now), HOUR_LIMIT)
    assert (inserted.outcome is Outcome.MERGED) is is_there


def test_S4_expiry_0_is_never():
    assert not is_expired(with_request(E0, expires=0).request, 2**62)


def given_hint(name: str, priority: int, process: str) -> Hint:
    return Hint(name, name, "b", 0, priority, at(process), at(process), at("08:00"))


def test_3_4_smallest_priority_then_smallest_date():
    hints = [
        given_hint("A", 20, "09:59"),
        given_hint("B", 20, "09:58"),
        given_hint("E", 180, "08:00"),
        given_hint("D", 200, "09:00"),
        given_hint("C", 0, "10:05"),
    ]
    assert [hint.id for hint in sorted(hints, key=order)] == ["C", "B", "A", "E", "D"]


def test_S55_two_entries_of_one_priority_and_date_have_an_order():
    one, other = given_hint("A", 20, "09:59"), given_hint("B", 20, "09:59")
    assert order(one) < order(other)


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        (E0, "10:00:10"),
        (with_request(E0, process=at("13:00")), "12:00:01"),
        (given_running("10:00:10"), "11:00:11"),
        (given_running("11:30:00"), "12:00:01"),
        (with_request(given_running("11:30:00"), expires=0), "12:30:01"),
    ],
    ids=["waiting", "expires before it is due", "processing", "expires before the limit", "never expires"],
)
def test_D2_1_an_entry_is_looked_at_when_time_alone_changes_something(entry, wanted):
    assert appointment(entry, HOUR_LIMIT) == Appointment(180, at(wanted))


HINT = Hint("h", "k", "b", 0, 180, at("10:30"), at("10:30"), at("10:00"))


@pytest.mark.parametrize(
    ("hint", "wanted", "now", "enough"),
    [
        (None, "10:30", "10:00", False),
        (HINT, "10:30", "10:00", True),
        (HINT, "10:45", "10:00", True),
        (HINT, "10:45", "10:30", False),
        (HINT, "10:15", "10:00", False),
        (HINT, "10:30", "10:40", True),
        (HINT, "10:35", "10:40", False),
        (replace(HINT, priority=20), "10:30", "10:00", False),
    ],
    ids=[
        "none",
        "exact",
        "early is looked at again",
        "has come and is early",
        "late",
        "overdue",
        "overdue and out of order",
        "other priority",
    ],
)
def test_S60_a_hint_that_comes_too_late_is_not_enough(hint, wanted, now, enough):
    assert serves(hint, Appointment(180, at(wanted)), at(now)) is enough


# Buckets


@pytest.mark.parametrize(
    ("period", "name", "begun", "ended"),
    [
        (Period.HOUR, "2026-11-17T09", "09:00", "10:00"),
        (Period.DAY, "2026-11-17", "00:00", "24:00"),
    ],
)
def test_D2_24_buckets_are_aligned_to_utc(period, name, begun, ended):
    assert bucket_of(period, at("09:30")) == name
    assert (begins(period, name), ends(period, name)) == (at(begun), at(ended))


@pytest.mark.parametrize(
    ("month", "after"), [("2026-11", "2026-12"), ("2026-12", "2027-01"), ("2028-02", "2028-03")]
)
def test_D2_24_a_month_is_a_calendar_month(month, after):
    assert ends(Period.MONTH, month) == begins(Period.MONTH, after)


@given(st.sampled_from(Period), st.integers(0, 4_102_444_800_000))
def test_S47_every_moment_is_in_its_bucket(period, moment):
    bucket = bucket_of(period, moment)
    assert begins(period, bucket) <= moment < ends(period, bucket)


NINE = "2026-11-17T09"


@pytest.mark.parametrize(
    ("state", "now", "settled", "then"),
    [
        (BucketState.OPEN, "09:59:59.999", True, BucketState.OPEN),
        (BucketState.OPEN, "10:00", False, BucketState.SEALED),
        (BucketState.SEALED, "10:40", False, BucketState.SEALED),
        (BucketState.SEALED, "10:00:59", True, BucketState.SEALED),
        (BucketState.SEALED, "10:45", True, BucketState.EMPTY),
        (BucketState.EMPTY, "10:59:59", True, BucketState.EMPTY),
        (BucketState.EMPTY, "11:00", True, BucketState.DISPOSED),
        (BucketState.DISPOSED, "23:00", True, BucketState.DISPOSED),
        (BucketState.SEALED, "23:00", False, BucketState.SEALED),
    ],
)
def test_3_5_bucket_09_step_by_step(state, now, settled, then):
    assert next_state(Bucket(NINE, state), Period.HOUR, at(now), SETTLE, settled) is then
