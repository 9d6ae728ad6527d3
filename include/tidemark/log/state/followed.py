"""Whether a pipeline is followed: one row in an object of its own, renewed while rounds are repeated.

The row has a deadline. A process that was killed leaves a row that counts for nothing once it has passed, so
status is right within ``TERM``. By the row an attempt also sees that a later one follows, and ends. No data
depends on it: leases and compare-and-set keep rounds apart.
A second row has the last error that needs a person: runs that would only meet it again begin less often.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from tidemark.clock import SECOND
from tidemark.consensus.objects import (
    AFTER_EVERY_NAME,
    Change,
    Consensus,
    ObjectKey,
    ObjectKind,
    RowRange,
    Snapshot,
)
from tidemark.consensus.update import update

STATE = "state"
FAILURE = "failure"
TERM = 20 * SECOND
"""How long a row counts after it was written, in µs."""
RENEWED = 5.0
"""Seconds between two renewals."""
LEAST_WAIT, MOST_WAIT = 60 * SECOND, 300 * SECOND
"""How long runs wait after the first of several failures in a row, and at most, in µs."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What a process that follows a pipeline says about itself.

    Attributes:
        holder: The run that follows, as leases name it.
        since: When it began, in µs.
        deadline: Until when this counts, in µs; 0 where the run has ended.
        last_round: When its last round ended, in µs; 0 before the first.
        lag: The age in seconds of the oldest record of that round when all targets had it, or of the oldest
            binding that a target still lacks; 0 where the round found nothing new and none lacks anything.
            While a round takes longer, at least for how long it is overdue.
        rounds: The number of rounds of the run.
        records: The number of records that they delivered.
        reconciled: When the targets were last compared with the log, in µs; kept from run to run.
        merged: When small files of the log were last merged, in µs; kept from run to run.
        needs_person: Why the run leaves writers out of its rounds, by the writer's name.
    """

    holder: str
    since: int
    deadline: int = 0
    last_round: int = 0
    lag: float = 0.0
    rounds: int = 0
    records: int = 0
    reconciled: int = 0
    merged: int = 0
    needs_person: Mapping[str, str] = field(default_factory=dict)

    def is_current(self, now: int) -> bool:
        """Whether the run goes on."""
        return now < self.deadline

    def to_json(self) -> str:
        """The row in the control plane."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class FollowFailure:
    """An error of a follow that needs a person.

    Attributes:
        at: When it happened, in µs.
        count: How many there were in a row.
        error: Its text.
        declared: A digest of the pipeline's file as it was.
    """

    at: int
    count: int
    error: str
    declared: str

    @property
    def until(self) -> int:
        """When the next run may begin, in µs; sooner where the pipeline's file has changed."""
        return self.at + min(LEAST_WAIT << min(self.count - 1, 10), MOST_WAIT)


def read_follow_failure(consensus: Consensus, pipeline: str) -> FollowFailure | None:
    """The last error that needed a person, however old."""
    return _failure_of(consensus.read(_key(pipeline), [FAILURE]))


def record_follow_failure(consensus: Consensus, pipeline: str, error: str, declared: str, now: int) -> None:
    """Write down an error that needs a person. One soon after the wait for another is one more in a row."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        found = _failure_of(snapshot)
        is_next = found is not None and found.declared == declared and now < found.until + MOST_WAIT
        failure = FollowFailure(now, found.count + 1 if found and is_next else 1, error, declared)
        return Change({FAILURE: json.dumps(asdict(failure))}), None

    update(consensus, _key(pipeline), [FAILURE], decide)


def read_followed(consensus: Consensus, pipeline: str) -> Followed | None:
    """The newest row, current or not; None where the pipeline was never followed."""
    return _of(consensus.read(_key(pipeline), [STATE]))


def record_followed(consensus: Consensus, pipeline: str, state: Followed) -> bool:
    """Write the row of a run that goes on, or has ended; returns False where a later one follows.

    The row of a later one is left alone.
    """

    def decide(snapshot: Snapshot) -> tuple[Change | None, bool]:
        found = _of(snapshot)
        is_other = found is not None and (found.holder, found.since) != (state.holder, state.since)
        if found is not None and is_other and (state.deadline == 0 or _is_later(found, state)):
            return None, False
        return Change({STATE: state.to_json()}), True

    return update(consensus, _key(pipeline), [STATE], decide)


def _is_later(found: Followed, state: Followed) -> bool:
    """Whether a row is that of a run that began later and goes on when ``state`` is written."""
    return found.since > state.since and found.is_current(state.deadline - TERM)


def forget_followed(consensus: Consensus, pipeline: str) -> None:
    """Remove the rows: only for a pipeline that is forgotten."""
    everything = Change(ranges=[RowRange("", AFTER_EVERY_NAME)])
    update(
        consensus,
        _key(pipeline),
        [STATE, FAILURE],
        lambda found: (everything if found.rows else None, None),
    )


def _key(pipeline: str) -> ObjectKey:
    return ObjectKey(ObjectKind.FOLLOWED, pipeline)


def _of(snapshot: Snapshot) -> Followed | None:
    return Followed(**json.loads(snapshot.rows[STATE])) if STATE in snapshot.rows else None


def _failure_of(snapshot: Snapshot) -> FollowFailure | None:
    return FollowFailure(**json.loads(snapshot.rows[FAILURE])) if FAILURE in snapshot.rows else None
