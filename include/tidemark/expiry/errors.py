"""Why a run over expired entities does not go on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.errors import TidemarkError

if TYPE_CHECKING:
    from tidemark.expiry.overtaken_appends import Overtaken
    from tidemark.log.model.binding import Offsets

SHOWN = 5
"""Entities that an error names; all of them are in the run's report."""


class ExpiryError(TidemarkError):
    """A run over expired entities was refused or stopped."""


class BadDays(ExpiryError):
    """Days that a run cannot be about."""

    needs_person = True

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}. Nothing was sent.")
        self.problem = problem


class TooManyPurges(ExpiryError):
    """A run wants to purge more entities than it may."""

    needs_person = True

    def __init__(self, pipeline: str, total: int, ceiling: int) -> None:
        super().__init__(
            f"{pipeline}: {total:,} entities expired, and a run may purge {ceiling:,}. Nothing was sent. "
            f"Look at them (tidemark journal expired {pipeline}); if they are to go, run "
            f"{pipeline}.purge_expired with max_purges of at least {total}."
        )
        self.pipeline, self.total, self.ceiling = pipeline, total, ceiling


class NotPlanned(ExpiryError):
    """A run has no plan, so nobody could have seen whom it is to purge."""

    needs_person = True

    def __init__(self, pipeline: str, run: str) -> None:
        super().__init__(
            f"{pipeline}: there is no plan of {run}, so nothing was purged. Clear its task `plan` and what "
            "follows, or start another run."
        )
        self.pipeline, self.run = pipeline, run


class NotToReport(ExpiryError):
    """A run about which there is nothing to report, or not yet."""

    needs_person = True

    def __init__(self, pipeline: str, run: str, problem: str) -> None:
        super().__init__(f"{pipeline}: {run} {problem}. Nothing was changed.")
        self.pipeline, self.run, self.problem = pipeline, run, problem


class AppendsPurged(ExpiryError):
    """Events were appended between the last look at their entity and its purge, and are gone with it."""

    needs_person = True

    def __init__(self, pipeline: str, found: "Sequence[Overtaken]") -> None:
        named = "; ".join(f"{one.topic}/{one.key}: id {one.id}" for one in found[:SHOWN])
        more = f"; and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
        super().__init__(
            f"{pipeline}: {len(found):,} appends came between the last look at their entity and its purge, "
            f"and were purged with it: {named}{more}. They are pinned, so compaction leaves them in the "
            f"commit log. Look at each (tidemark log show {pipeline} --from ID --to ID --json), append its "
            f"events again (tidemark journal append {pipeline} KEY …), then let it go: "
            f"tidemark log unpin {pipeline} ID"
        )
        self.pipeline, self.found = pipeline, tuple(found)


class OffsetsUnseen(ExpiryError):
    """Between the log and what Kafka holds there is something that nobody can look at any more."""

    needs_person = True

    def __init__(self, pipeline: str, topic: str, partition: int, first: int, held: "Offsets") -> None:
        super().__init__(
            f"{pipeline}: the log has {topic}/{partition} up to offset {first}, and Kafka has "
            f"{held.earliest} to {held.latest}: nobody can tell what else was sent. Nothing more was purged. "
            f"Run {pipeline}.replicate; it says what was lost and what to do."
        )
        self.pipeline, self.topic, self.partition = pipeline, topic, partition
        self.first, self.held = first, held


class KafkaFailed(ExpiryError):
    """Kafka did not do what was asked of it."""

    def __init__(self, pipeline: str, what: str, reason: str) -> None:
        super().__init__(
            f"{pipeline}: {what} ({reason.rstrip('.')}). What was sent is recognised: run it again when "
            "Kafka answers, and nothing is sent twice."
        )
        self.pipeline, self.what, self.reason = pipeline, what, reason
