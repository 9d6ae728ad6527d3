"""Buckets: the periods by which hints are kept together, and thrown away together.

A bucket is named by its absolute period in UTC. It is open until its period is over, sealed from then on,
empty when no entry names a hint in it any more, and disposed of as a whole one period later. Every step is
decided here and made by compare-and-set elsewhere.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

SECOND = 1000


class Period(StrEnum):
    """How long a bucket takes hints."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class BucketState(StrEnum):
    """The four states, in their order.

    Attributes:
        OPEN: Its period is not over, and it takes hints.
        SEALED: Its period is over, and entries still name hints in it.
        EMPTY: No entry names a hint in it any more.
        DISPOSED: Its hints are deleted as a whole.
    """

    OPEN = "open"
    SEALED = "sealed"
    EMPTY = "empty"
    DISPOSED = "disposed"


_FORMS = {Period.HOUR: "%Y-%m-%dT%H", Period.DAY: "%Y-%m-%d", Period.MONTH: "%Y-%m"}


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket as the registry has it."""

    id: str
    state: BucketState
    sealed_at: int | None = None


def bucket_of(period: Period, at: int) -> str:
    """The bucket of a hint that is due at this time."""
    return datetime.fromtimestamp(at // SECOND, UTC).strftime(_FORMS[period])


def begins(period: Period, bucket: str) -> int:
    """The first millisecond of a bucket."""
    begun = datetime.strptime(bucket, _FORMS[period]).replace(tzinfo=UTC)
    return int(begun.timestamp()) * SECOND


def ends(period: Period, bucket: str) -> int:
    """The first millisecond after a bucket."""
    begun = datetime.fromtimestamp(begins(period, bucket) // SECOND, UTC)
    match period:
        case Period.HOUR:
            end = begun + timedelta(hours=1)
        case Period.DAY:
            end = begun + timedelta(days=1)
        case Period.MONTH:
            end = (begun + timedelta(days=31)).replace(day=1)
    return int(end.timestamp()) * SECOND


def next_state(bucket: Bucket, period: Period, now: int, settle: int, is_settled: bool) -> BucketState:
    """One step further, or where it is.

    ``is_settled`` is whether no entry names a hint of the bucket. A hint may be on its way for ``settle``
    after the period, and the bucket before the current one is kept, empty or not.
    """
    end = ends(period, bucket.id)
    match bucket.state:
        case BucketState.OPEN if now >= end:
            return BucketState.SEALED
        case BucketState.SEALED if is_settled and now >= end + settle:
            return BucketState.EMPTY
        case BucketState.EMPTY if now >= ends(period, bucket_of(period, end)):
            return BucketState.DISPOSED
    return bucket.state
