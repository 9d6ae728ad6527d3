"""Errors of expiry runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.errors import TidemarkError, with_fields

if TYPE_CHECKING:
    from tidemark.expiry.overtaken_appends import Overtaken
    from tidemark.log.model.binding import Offsets

SHOWN = 5
"""The most entities that an error names. All of them are in the run's report."""


class ExpiryError(TidemarkError):
    """An expiry run was refused or stopped."""


@with_fields
class BadDays(ExpiryError):
    """Days that a run cannot cover."""

    needs_person = True

    problem: str

    text = "{problem}. Nothing was sent."


@with_fields
class TooManyPurges(ExpiryError):
    """A run would purge more entities than it is allowed to."""

    needs_person = True

    pipeline: str
    total: int
    ceiling: int

    text = (
        "{pipeline}: {total:,} entities expired, and a run may purge {ceiling:,}. Nothing was sent. Look at "
        "them (tidemark journal expired {pipeline}); if they are to go, run {pipeline}.purge_expired with "
        "max_purges of at least {total}."
    )


@with_fields
class NotPlanned(ExpiryError):
    """A run has no plan, so its purges could not have been reviewed."""

    needs_person = True

    pipeline: str
    run: str

    text = (
        "{pipeline}: there is no plan of {run}, so nothing was purged. Clear its task `plan` and what "
        "follows, or start another run."
    )


@with_fields
class NotToReport(ExpiryError):
    """A run that has nothing to report, or nothing yet."""

    needs_person = True

    pipeline: str
    run: str
    problem: str

    text = "{pipeline}: {run} {problem}. Nothing was changed."


@with_fields
class AppendsPurged(ExpiryError):
    """Events that were appended between the last check of their entity and its purge were purged with it."""

    needs_person = True

    pipeline: str
    found: "Sequence[Overtaken]"

    def __str__(self) -> str:
        named = "; ".join(f"{one.topic}/{one.key}: id {one.id}" for one in self.found[:SHOWN])
        more = f"; and {len(self.found) - SHOWN:,} more" if len(self.found) > SHOWN else ""
        return (
            f"{self.pipeline}: {len(self.found):,} appends came between the last look at their entity and "
            f"its purge, and were purged with it: {named}{more}. They are pinned, so compaction leaves "
            f"them in the commit log. Look at each (tidemark log show {self.pipeline} --from ID --to ID "
            f"--json), append its events again (tidemark journal append {self.pipeline} KEY …), then let "
            f"it go: tidemark log unpin {self.pipeline} ID"
        )


@with_fields
class OffsetsUnseen(ExpiryError):
    """Kafka no longer has all offsets beyond the log, so the last check is not possible."""

    needs_person = True

    pipeline: str
    topic: str
    partition: int
    first: int
    held: "Offsets"

    text = (
        "{pipeline}: the log has {topic}/{partition} up to offset {first}, and Kafka has {held.earliest} to "
        "{held.latest}: what else was sent is unknown. Nothing more was purged. Run "
        "{pipeline}.replicate; it says what was lost and what to do."
    )


@with_fields
class KafkaFailed(ExpiryError):
    """A request to Kafka failed."""

    pipeline: str
    what: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: {self.what} ({self.reason.rstrip('.')}). What was sent is recognised: run "
            "it again when Kafka answers, and nothing is sent twice."
        )
