"""The build of a rendition: its consumer is delivered to until it has the whole log.

Ordinary delivery, repeated: every binding is a commit, so a build that was killed goes on where it stopped,
and an operator may stop it at any time. Another process that delivers to the same rendition is waited for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from tidemark.clock import utc_text
from tidemark.consensus.lease_wait import attempts
from tidemark.delivery.deliver import AGAIN_PATIENCE, Delivered
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.build_progress import progress_of
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.writer import Written
from tidemark.errors import with_fields

events = structlog.get_logger()


@with_fields
class NotDelivered(DeliveryError):
    """A delivery to a consumer that the pipeline does not have, or to which nothing is delivered."""

    needs_person = True

    pipeline: str
    consumer: str

    text = (
        "{pipeline}: nothing is delivered to {consumer}: no rendition of this name is active, being built, "
        "verified, or superseded for less than its `soak`. Nothing was changed. List them: tidemark status "
        "{pipeline} --json"
    )


@with_fields
class BuildStopped(DeliveryError):
    """A delivery to one consumer did not come to its end."""

    needs_person = True

    pipeline: str
    consumer: str
    position: int
    problem: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.consumer}: it stopped at id {self.position}: "
            f"{self.problem.rstrip('.')}. What is finished is kept, and a further delivery goes on there. "
            f"Look at its gate: tidemark gate show {self.pipeline} {self.consumer}"
        )


@dataclass(frozen=True)
class Build:
    """One build.

    Attributes:
        name: The consumer's name.
        log: The published log; it is read again until the consumer has all of it.
        positions: The consumers of the pipeline.
        is_stopping: Whether the process was asked to stop.
        patience: How many seconds to wait for another process that delivers to it.
    """

    name: str
    log: PublishedLog
    positions: Positions
    is_stopping: Callable[[], bool] = lambda: False
    patience: float = AGAIN_PATIENCE

    def until_caught_up(self, deliver_once: Callable[[PublishedLog], Delivered]) -> Delivered:
        """Deliver until the end of the log, a closed gate or a request to stop; the counts are those of all
        deliveries together."""
        log, total, before = self.log, Written(), None
        while True:
            done = self._deliver(deliver_once, log)
            total += done.total
            done = replace(done, total=total)
            self._report(log, total)
            if done.gate or done.failure or done.is_ended or self.is_stopping() or done.position == before:
                return done
            before, log = done.position, log.reopened()
            if done.position >= log.end:
                return done

    def _deliver(self, deliver_once: Callable[[PublishedLog], Delivered], log: PublishedLog) -> Delivered:
        for is_last in attempts(self.patience):
            try:
                return deliver_once(log)
            except LeaseHeld as held:
                state = self.positions.load(self.name)
                if state is not None and state.gate is None and state.position >= log.end:
                    return Delivered(state.position)  # the other process has done it
                if is_last or self.is_stopping():
                    raise
                events.info("waiting for another process", writer=self.name, holder=held.lease.holder)
        raise AssertionError("never reached")

    def _report(self, log: PublishedLog, total: Written) -> None:
        now = progress_of(self.positions, self.name, log)
        events.info(
            "building",
            writer=self.name,
            bindings_left=now.bindings_left,
            ids_done=now.ids_done,
            ids_left=now.ids_left,
            messages=total.written,
            estimated_end=utc_text(now.estimated_end) if now.estimated_end else None,
        )


def refuse_stopped(pipeline: str, consumer: str, outcome: Mapping[str, Any]) -> None:
    """Raise ``BuildStopped`` where a delivery to one consumer ended before the end of the log.

    ``outcome`` is its part of the summary.
    """
    gate = outcome["gate"]
    reason = outcome["failure"] or (gate["reason"] if gate else None)
    if outcome["ended"]:
        reason = "its rendition was retired or given up"
    if outcome["left_to"]:
        reason = f"{outcome['left_to']} delivers to it"
    if reason:
        raise BuildStopped(pipeline, consumer, outcome["position"], reason)
