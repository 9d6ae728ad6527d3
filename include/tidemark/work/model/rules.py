"""A journal's rules about time: expiry, time limits, due times and backoff. Pure; times are arguments.

Expiry and the time limit are compared in whole seconds: an entry is expired *after* its expiry, a claim has
lapsed after *more than* its limit.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from tidemark.work.model.entry import NEVER, Entry, Request

SECOND = 1000
FOREVER = 2**63 - 1
FURTHEST = 10 * 365 * 86_400 * SECOND
"""The furthest time ahead: a hint must live until then, and Cassandra limits a time to live to 20 years."""


class OnMerge(StrEnum):
    """What a repeated request does to the process time: postpone it (debounce) or keep it (throttle)."""

    LARGEST = "largest"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decisions depend on; all lengths of time in milliseconds.

    Attributes:
        time_limit: The time after which a claim that was not renewed lapses.
        max_timeouts: The number of lapsed claims that makes a dead letter.
        max_failures: The number of failures that makes a dead letter.
        backoff_first: The longest backoff after the first failure; it doubles with every further one.
        backoff_most: The longest backoff after any failure.
        max_delay: The latest process time of a request, from its insertion; None for no limit.
        on_merge: The process time of a merged request.
    """

    time_limit: int = 3_600_000
    max_timeouts: int = 5
    max_failures: int = 25
    backoff_first: int = 5_000
    backoff_most: int = 3_600_000
    max_delay: int | None = None
    on_merge: OnMerge = OnMerge.LARGEST


def is_expired(request: Request, now: int) -> bool:
    """Whether the request counts as deleted."""
    return request.expires != NEVER and now // SECOND > request.expires // SECOND


def expires_at(request: Request) -> int:
    """The first millisecond at which the request is expired."""
    return FOREVER if request.expires == NEVER else (request.expires // SECOND + 1) * SECOND


def is_never_due(request: Request) -> bool:
    """Whether the request expires before it may be processed."""
    return is_expired(request, request.process)


def larger_expiry(one: int, other: int) -> int:
    """The later of two expiries; never is later than any date."""
    return NEVER if NEVER in (one, other) else max(one, other)


def is_lapsed(entry: Entry, now: int, rules: Rules) -> bool:
    """Whether the entry's claim is older than the time limit."""
    if entry.is_waiting or entry.start is None:
        return False
    return now // SECOND - entry.start // SECOND > rules.time_limit // SECOND


def lapses_at(start: int, rules: Rules) -> int:
    """The first millisecond at which a claim of that start has lapsed."""
    return (start // SECOND + rules.time_limit // SECOND + 1) * SECOND


def is_due(entry: Entry, now: int) -> bool:
    """Whether the entry waits and may be claimed."""
    return entry.is_waiting and entry.request.process <= now


def ceiling(inserted: int, process: int, rules: Rules) -> int:
    """The process time, limited to ``max_delay`` after the insertion."""
    return process if rules.max_delay is None else min(process, inserted + rules.max_delay)


def back_off(key: str, failures: int, rules: Rules) -> int:
    """The backoff of a failed entry: doubled each time up to the most, less a jitter of up to half.

    The jitter is a hash of the key: entries that failed together are not retried together, and deciding the
    same failure twice gives the same time.
    """
    longest = min(rules.backoff_most, rules.backoff_first << min(failures - 1, 40))
    spread = int.from_bytes(blake2b(f"{key}/{failures}".encode(), digest_size=8).digest(), "big")
    return longest - spread % (longest // 2 + 1)
