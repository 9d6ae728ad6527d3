"""Buckets: periods of time whose hints are stored together and deleted together.

A bucket is named by its period in UTC. It is open until the period ends, then sealed, then empty once no
entry refers to a hint in it, and disposed of as a whole one period later. This module decides each step; the
registry commits it by compare-and-set.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

SECOND = 1000


class Period(StrEnum):
    """The length of a bucket."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class BucketState(StrEnum):
    """The four states of a bucket, in their order.

    Attributes:
        OPEN: Its period has not ended; hints are added.
        SEALED: Its period has ended; entries may still refer to hints in it.
        EMPTY: No entry refers to a hint in it.
        DISPOSED: Its hints are deleted.
    """

    OPEN = "open"
    SEALED = "sealed"
    EMPTY = "empty"
    DISPOSED = "disposed"


_FORMS = {Period.HOUR: "%Y-%m-%dT%H", Period.DAY: "%Y-%m-%d", Period.MONTH: "%Y-%m"}


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket as the registry stores it; ``sealed_at`` is in ms, None while it is open."""

    id: str
    state: BucketState
    sealed_at: int | None = None


def bucket_of(period: Period, at: int) -> str:
    """The name of the bucket for hints that are due at ``at``, in ms."""
    return datetime.fromtimestamp(at // SECOND, UTC).strftime(_FORMS[period])


def begins(period: Period, bucket: str) -> int:
    """The first millisecond of a bucket."""
    start = datetime.strptime(bucket, _FORMS[period]).replace(tzinfo=UTC)
    return int(start.timestamp()) * SECOND


def ends(period: Period, bucket: str) -> int:
    """The first millisecond after a bucket."""
    start = datetime.fromtimestamp(begins(period, bucket) // SECOND, UTC)
    match period:
        case Period.HOUR:
            end = start + timedelta(hours=1)
        case Period.DAY:
            end = start + timedelta(days=1)
        case Period.MONTH:
            end = (start + timedelta(days=31)).replace(day=1)
    return int(end.timestamp()) * SECOND


def next_state(bucket: Bucket, period: Period, now: int, settle: int, is_settled: bool) -> BucketState:
    """The bucket's next state, or its present one where no step is due.

    Args:
        bucket: The bucket as it is stored.
        period: The journal's bucket length.
        now: The time, in ms.
        settle: How long after the period a hint may still become visible, in ms.
        is_settled: Whether no entry refers to a hint of the bucket.

    An empty bucket is kept for one more period.
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
