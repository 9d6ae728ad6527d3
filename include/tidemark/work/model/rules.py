"""What a journal's declaration says about time: pure questions on numbers, no clock.

Expiry and the time limit are compared in whole seconds and taken literally: *after* the expiry, *more than*
the limit.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from tidemark.work.model.entry import NEVER, Entry, Request

SECOND = 1000
FOREVER = 2**63 - 1
FURTHEST = 10 * 365 * 86_400 * SECOND
"""How far ahead anything may be: a hint lives until then, and Cassandra keeps nothing for 20 years."""


class OnMerge(StrEnum):
    """What a repeated request does to the date: push it back (debounce), or leave it (throttle)."""

    LARGEST = "largest"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decisions depend on; all lengths of time in milliseconds.

    Attributes:
        time_limit: After which a claim that was not refreshed lapses.
        max_timeouts: So many lapsed claims make a dead letter.
        max_failures: So many failures make a dead letter.
        backoff_first: The longest wait after the first failure; it doubles with every further one.
        backoff_most: The longest wait after any failure.
        max_delay: How long after its insertion a request is to be processed at the latest; None for no limit.
        on_merge: Which process date a merged request has.
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
    """The first moment at which it is expired."""
    return FOREVER if request.expires == NEVER else (request.expires // SECOND + 1) * SECOND


def is_never_due(request: Request) -> bool:
    """Whether the request expires before it may be processed."""
    return is_expired(request, request.process)


def larger_expiry(one: int, other: int) -> int:
    """The later of two expiries; never is later than any date."""
    return NEVER if NEVER in (one, other) else max(one, other)


def is_lapsed(entry: Entry, now: int, rules: Rules) -> bool:
    """Whether whoever claimed the entry has had more than the time limit."""
    if entry.is_waiting or entry.start is None:
        return False
    return now // SECOND - entry.start // SECOND > rules.time_limit // SECOND


def lapses_at(start: int, rules: Rules) -> int:
    """The first moment at which a claim of that start is lapsed."""
    return (start // SECOND + rules.time_limit // SECOND + 1) * SECOND


def is_due(entry: Entry, now: int) -> bool:
    """Whether a waiting entry may be given out."""
    return entry.is_waiting and entry.request.process <= now


def ceiling(inserted: int, process: int, rules: Rules) -> int:
    """A process date no further from the insertion date than the journal allows."""
    return process if rules.max_delay is None else min(process, inserted + rules.max_delay)


def back_off(key: str, failures: int, rules: Rules) -> int:
    """How long a failed entry waits: twice as long each time up to the most, less up to half of it.

    Which part of the half depends on the key, so that entries which failed together do not come back
    together, and the same failure decided twice comes to the same date.
    """
    longest = min(rules.backoff_most, rules.backoff_first << min(failures - 1, 40))
    spread = int.from_bytes(blake2b(f"{key}/{failures}".encode(), digest_size=8).digest(), "big")
    return longest - spread % (longest // 2 + 1)
