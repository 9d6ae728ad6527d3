"""A run of a follow: rounds until its time is over, with figures every minute and upkeep from time to time.

Decides nothing itself: ``pace`` says what is next. A signal to stop, or a closed gate, ends the run after the
round, so nothing is left half done. An error of a round ends the run; the next attempt continues.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from tidemark.app.follow.errors import RoundFailed, WritersLeftOut
from tidemark.app.follow.figures import Figures
from tidemark.app.follow.pace import (
    MERGED_EVERY,
    MINUTE,
    RECONCILED_EVERY,
    FollowStep,
    RoundKind,
    Timing,
    is_due,
    next_step,
    round_kind,
)
from tidemark.app.follow.round_types import RoundDone
from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.consensus.lease_holder import LeaseHolder
from tidemark.consensus.objects import Consensus
from tidemark.log.model.binding import TopicPartition
from tidemark.log.state.followed import RENEWED, TERM, Followed, read_followed, record_followed
from tidemark.pipeline.model import FollowDeclaration

LONGEST_SLEEP = 0.1
"""Seconds after which a pause notices a signal to stop."""

events = structlog.get_logger()


class FollowedRounds(Protocol):
    """What a run needs of its rounds; see ``Rounds``."""

    holder: str
    reached: Mapping[TopicPartition, int]
    written_until: int
    active_from: int

    def ends(self) -> Mapping[TopicPartition, int]:
        """See ``Rounds.ends``."""

    def refuse_replicator(self) -> None:
        """See ``Rounds.refuse_replicator``."""

    def whole(self, is_stopping: Callable[[], bool]) -> RoundDone:
        """See ``Rounds.whole``."""


@dataclass(frozen=True)
class Upkeep:
    """What a run does from time to time, beside its rounds.

    Attributes:
        reconcile: Compares a sample of every target with the log; returns the writers whose gates closed.
        merge: Merges small files of the log, until the function that it is given says that the run is over;
            called in a thread of its own, because it may take longer than a round. Raises nothing.
        is_outdated: Whether the library's files were changed since this process has loaded them; asked once a
            minute. The run is over then, and the next one begins with the new code.
    """

    reconcile: Callable[[], list[str]] = list
    merge: Callable[[Callable[[], bool]], None] = lambda is_over: None
    is_outdated: Callable[[], bool] = lambda: False


class FollowRun:
    """One run; ``repeat`` returns its summary."""

    def __init__(
        self,
        pipeline: str,
        declared: FollowDeclaration,
        rounds: FollowedRounds,
        consensus: Consensus,
        upkeep: Upkeep,
        *,
        clock: Clock = wall_clock,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._pipeline, self._declared, self._rounds, self._consensus = pipeline, declared, rounds, consensus
        self._upkeep, self._clock, self._sleep = upkeep, clock, sleep
        now = clock()
        self._timing = Timing(now, written_until=rounds.written_until)
        self._total, self._minute, self._minute_began = Figures(), Figures(), now
        self._closed: list[str] = []
        self._must_wait = self._is_outdated = False
        self._is_overtaken = False
        """Whether a later attempt follows, to which leases under the same name are free."""
        self._waiting_since: int | None = None
        self._merging: threading.Thread | None = None
        self._merged_below = rounds.active_from
        self._is_over = threading.Event()
        before = read_followed(consensus, pipeline)
        self._followed = Followed(
            rounds.holder,
            now,
            reconciled=before.reconciled if before else now,
            merged=before.merged if before else now,
        )

    def repeat(self, is_stopping: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """Repeat rounds until the end of the run."""
        self._renew()
        try:
            with LeaseHolder(f"follow of {self._pipeline}", self._renew, self._release, every=RENEWED):
                self._rounds.refuse_replicator()
                while not (step := self._next(is_stopping() or self._is_overtaken)).is_end:
                    if step is FollowStep.ROUND:
                        self._round(is_stopping)
                        self._keep_up()
        finally:
            self._is_over.set()
            if self._merging is not None:
                self._merging.join()
        self._end_minute()
        summary = {
            **self._total.to_dict(),
            "ended": step.value,
            "closed": self._closed,
            "seconds_followed": round((self._clock() - self._timing.began) / SECOND, 1),
        }
        events.info("follow ended", pipeline=self._pipeline, **summary)
        if left_out := self._followed.needs_person:
            raise WritersLeftOut(self._pipeline, " ".join(left_out.values()))
        return summary

    def _next(self, is_stopping: bool) -> FollowStep:
        """The next step; a pause is over when this returns."""
        now = self._clock()
        is_closed = bool(self._closed) or self._must_wait
        step, until = next_step(
            self._declared,
            self._timing,
            now,
            is_stopping=is_stopping,
            is_closed=is_closed,
            is_outdated=self._is_outdated,
        )
        if step is FollowStep.PAUSE:
            self._sleep(min((until - now) / SECOND, LONGEST_SLEEP))
        return step

    def _round(self, is_stopping: Callable[[], bool]) -> None:
        began = self._clock()
        self._timing = replace(self._timing, round_began=began)
        rounds, ends = self._rounds, self._rounds.ends()
        if round_kind(rounds.reached, ends, self._timing, began) is RoundKind.IDLE:
            self._minute.note_idle(self._waiting)
        else:
            done = rounds.whole(is_stopping)
            self._timing = replace(
                self._timing, looked=began, written_until=rounds.written_until, is_behind=done.is_behind
            )
            self._note(done, (self._clock() - began) / SECOND)
        total = self._total
        self._followed = replace(
            self._followed,
            last_round=self._clock(),
            lag=round(self._minute.lag, 3),
            rounds=total.rounds + self._minute.rounds,
            records=total.records + self._minute.records,
        )

    def _note(self, done: RoundDone, seconds: float) -> None:
        if done.needs_person:
            self._followed = replace(self._followed, needs_person=done.needs_person)
        self._waiting_since = done.waiting_since
        if done.delivered or done.records:
            self._minute.note(done.records, done.took, seconds, self._waiting)
        else:
            self._minute.note_idle(self._waiting)
        self._closed += done.closed
        self._must_wait = done.must_wait
        if done.failures:
            raise RoundFailed(self._pipeline, " ".join(f"{one}." for one in done.failures))

    @property
    def _waiting(self) -> float:
        """For how many seconds something has not been delivered; 0 where everything is."""
        since = self._waiting_since
        return 0.0 if since is None else max(0.0, (self._clock() - since) / SECOND)

    def _keep_up(self) -> None:
        """Whatever is due beside the rounds. A gate that closes in it ends the run like any other."""
        now = self._clock()
        if now - self._minute_began >= MINUTE:
            self._end_minute()
            self._rounds.refuse_replicator()
            self._is_outdated = self._upkeep.is_outdated()
        if self._closed or self._must_wait:
            return
        if is_due(self._followed.reconciled, RECONCILED_EVERY, now):
            # Before it is done: one that fails must not be the first thing that every attempt does.
            self._followed = replace(self._followed, reconciled=now)
            self._closed += self._upkeep.reconcile()
        active_from, is_merging = self._rounds.active_from, self._merging and self._merging.is_alive()
        is_wanted = active_from != self._merged_below or is_due(self._followed.merged, MERGED_EVERY, now)
        if is_wanted and not is_merging:
            self._merged_below = active_from
            self._merging = threading.Thread(
                target=self._upkeep.merge, args=[self._is_over.is_set], name="merge"
            )
            self._merging.start()
            self._followed = replace(self._followed, merged=now)

    def _end_minute(self) -> None:
        events.info("followed", pipeline=self._pipeline, **self._minute.to_dict())
        self._total.add(self._minute)
        self._minute, self._minute_began = Figures(lag=self._minute.lag), self._clock()

    def _renew(self) -> None:
        now, state = self._clock(), self._followed
        # While a round takes long, what it will deliver is as old as the time since the last one.
        overdue = (now - (state.last_round or state.since)) / SECOND - self._declared.every.total_seconds()
        state = replace(state, deadline=now + TERM, lag=round(max(state.lag, overdue), 3))
        if not record_followed(self._consensus, self._pipeline, state):
            self._is_overtaken = True

    def _release(self) -> None:
        record_followed(self._consensus, self._pipeline, replace(self._followed, deadline=0))
