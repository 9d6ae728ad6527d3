"""Days in a pipeline's time zone: which days a run covers, and when a day is finished.

A day belongs to the data interval in which it ends, so consecutive intervals cover every day once, even where
the zone changes its offset from UTC. The current time is a parameter; no clock is read here.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache

from tidemark.expiry.errors import BadDays

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)
MOST_DAYS = 10_000
"""The most days of one run. More is taken for a typing error."""


class WaitsFor(StrEnum):
    """Why a later run has to query a day again."""

    SOURCE = "the source is not bound up to its end"
    WRITER = "the writer has not finished what was bound until its end"
    ENTITIES = "entities are left that expired on it"


@lru_cache(maxsize=4096)
def day_end(day: date, zone: tzinfo) -> int:
    """The time (µs since 1970) at which a day ends for good in a zone: no later time belongs to it."""
    midnight = datetime.combine(day + _DAY, time())
    # Where the offset changes at midnight, that local time exists twice or not at all.
    moments = sorted({_micros(midnight.replace(tzinfo=zone, fold=fold)) for fold in (0, 1)})
    for moment in reversed(moments):
        if local_date(moment, zone) > day >= local_date(moment - 1, zone):
            return moment
    # Midnight was skipped by a change of the offset before it, so the end is found by bisection.
    low, high = moments[0] - 1, moments[-1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if local_date(middle, zone) > day else (middle, high)
    return high


def local_date(moment: int, zone: tzinfo) -> date:
    """The date in a zone at a time (µs since 1970)."""
    return (_EPOCH + moment * _MICROSECOND).astimezone(zone).date()


def days_ended_between(start: int, end: int, zone: tzinfo) -> tuple[date, ...]:
    """The days that a data interval covers: those that ended after ``start`` and not after ``end`` (µs)."""
    found = []
    day = local_date(start, zone) - 2 * _DAY
    while (ended := day_end(day, zone)) <= end:
        if ended > start:
            found.append(day)
        day += _DAY
    return tuple(found)


def days_due(
    start: int, end: int, through: date | None, zone: tzinfo, begun: int | None = None
) -> tuple[date, ...]:
    """The days of a scheduled run's data interval (µs), and earlier days that no scheduled run covered.

    ``through`` is the last day that a scheduled run covered. Where it is None, the days since ``begun`` are
    due, the time (µs) at which the log begins. Raises BadDays for more than ``MOST_DAYS``.
    """
    covered = begun if through is None else day_end(through, zone)
    begin = start if covered is None else min(start, covered)
    days = days_ended_between(begin, end, zone)
    if len(days) > MOST_DAYS:
        since = through or local_date(begin, zone)
        raise BadDays(f"since {since} more than {MOST_DAYS:,} days have passed; run it for some by hand")
    return days


def days_asked_for(first: date | None, last: date | None, now: int, zone: tzinfo) -> tuple[date, ...]:
    """The days that an operator names, both included.

    ``last`` is by default the last day that is over, ``first`` the same day as ``last``. Raises BadDays where
    a day is not over in the zone, because an append can still extend the life of its entities.
    """
    over = local_date(now, zone) - _DAY
    begin = first or last or over
    end = last or over
    if begin > end:
        if last is None:
            raise BadDays(f"{begin} is not over in {zone}; {over} is the last day that is")
        raise BadDays(f"{begin} is later than {end}")
    if day_end(end, zone) > now:
        raise BadDays(f"{end} is not over in {zone}; {over} is the last day that is")
    if (end - begin).days >= MOST_DAYS:
        raise BadDays(f"from {begin} to {end} are more than {MOST_DAYS:,} days")
    return tuple(begin + number * _DAY for number in range((end - begin).days + 1))


def days_to_ask(covered: Iterable[date], unfinished: Iterable[date]) -> tuple[date, ...]:
    """The days that a run queries: those it covers, and those that earlier runs could not finish."""
    return tuple(sorted({*covered, *unfinished}))


def waits_for(ended: int, upper: int, waiting: Iterable[int], left: int) -> WaitsFor | None:
    """Why a day has to be queried again; None where it is finished, so that no entity can expire on it later.

    ``ended`` is the end of the day, ``upper`` the first time that is not bound, ``waiting`` the times of the
    bindings beyond the writer's position (all in µs), ``left`` the number of heads that still expire on it.
    """
    if upper < ended:
        return WaitsFor.SOURCE
    if any(t < ended for t in waiting):
        return WaitsFor.WRITER
    return WaitsFor.ENTITIES if left else None


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
