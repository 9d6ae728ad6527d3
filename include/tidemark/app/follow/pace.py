"""When a follow does what: the next round, a pause, the end, and what is due from time to time.

Pure: times are arguments, in µs. Nothing here reads a clock, Kafka or Cassandra.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tidemark.clock import SECOND
from tidemark.log.model.binding import Binding, TopicPartition
from tidemark.pipeline.model import FollowDeclaration

LOOK = 5 * SECOND
"""How often an idle follow looks at everything: new topics, lost offsets, writers that are behind. Advances
``upper``."""
MOST_AHEAD = 5 * SECOND
"""How far write times may be ahead of the clock. A million ids take a second of write times."""
MINUTE = 60 * SECOND
RECONCILED_EVERY = 5 * MINUTE
MERGED_EVERY = MINUTE
"""Also when a segment has closed: until it is merged, it has a file for each binding and partition."""


class FollowStep(StrEnum):
    """What a follow does next.

    Attributes:
        ROUND: The next round.
        PAUSE: Wait; then ask again.
        END_STOPPED: End, because the process was asked to stop.
        END_CLOSED: End, because a writer's gate closed in this run. The tasks after it start a resume.
        END_OVER: End, because the time of this run is over, or its code was changed. The next run continues.
    """

    ROUND = "round"
    PAUSE = "pause"
    END_STOPPED = "stopped"
    END_CLOSED = "gate closed"
    END_OVER = "over"

    @property
    def is_end(self) -> bool:
        """Whether there is no further round."""
        return self not in (FollowStep.ROUND, FollowStep.PAUSE)


class RoundKind(StrEnum):
    """How much a round does.

    Attributes:
        IDLE: Nothing: one request has told that Kafka has nothing new.
        WHOLE: Bind, and what follows from it.
    """

    IDLE = "idle"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of a run so far.

    Attributes:
        began: When the run began.
        round_began: When the last round began; None before the first.
        looked: When a round last looked at everything; None before the first.
        written_until: The last write time of the newest known binding; 0 where none is known.
        is_behind: Whether a writer has more to catch up with than the last round delivered.
    """

    began: int
    round_began: int | None = None
    looked: int | None = None
    written_until: int = 0
    is_behind: bool = False


def next_step(
    declared: FollowDeclaration,
    timing: Timing,
    now: int,
    *,
    is_stopping: bool = False,
    is_closed: bool = False,
    is_outdated: bool = False,
) -> tuple[FollowStep, int]:
    """What to do at ``now``, and for a pause until when.

    ``is_closed`` is whether a gate closed in this run: one that was closed before only leaves its writer out.
    ``is_outdated`` is whether the code was changed since the run began.
    """
    if is_stopping:
        return FollowStep.END_STOPPED, now
    if is_closed:
        return FollowStep.END_CLOSED, now
    over = timing.began + _micros(declared.lasts.total_seconds())
    if now >= over or is_outdated:
        return FollowStep.END_OVER, now
    is_at_once = timing.round_began is None or timing.is_behind
    due = now if is_at_once else (timing.round_began or 0) + _micros(declared.every.total_seconds())
    due = max(due, timing.written_until - MOST_AHEAD)
    return (FollowStep.ROUND, now) if due <= now else (FollowStep.PAUSE, min(due, over))


def round_kind(
    reached: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], timing: Timing, now: int
) -> RoundKind:
    """How much the round at ``now`` does.

    ``reached`` are the next offsets to bind, ``ends`` those that Kafka will give to the next records. An end
    that is below is a loss, which a whole round finds. A writer that is behind needs whole rounds, whatever
    Kafka has.
    """
    is_due = timing.looked is None or now - timing.looked >= LOOK or timing.is_behind
    is_idle = bool(reached) and all(ends.get(place) == offset for place, offset in reached.items())
    return RoundKind.IDLE if is_idle and not is_due else RoundKind.WHOLE


def write_times_end(binding: Binding) -> int:
    """The last write time that a binding may give, in µs."""
    return binding.t + binding.width


def is_due(last: int, every: int, now: int) -> bool:
    """Whether something that is done ``every`` so many µs, and was ``last`` done then, is due.

    By windows of the clock, not by the time since: short runs would never come to it.
    """
    return now // every > last // every


def _micros(seconds: float) -> int:
    return int(seconds * SECOND)
