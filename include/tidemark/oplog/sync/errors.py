"""Errors of synchronisations. Unless the text says otherwise, nothing was sent."""

from collections.abc import Mapping, Sequence

from tidemark.errors import TidemarkError, with_fields

SHOWN = 20
"""The most bad lines that a text names. The caller was shown every one of them."""


class SyncError(TidemarkError):
    """A synchronisation was refused or stopped."""


@with_fields
class NoOplogCollection(SyncError):
    """A pipeline has no collection of objects to compare a dump with."""

    needs_person = True

    pipeline: str

    text = (
        "{pipeline}: it has no collection with the envelope `oplog`, which a dump is compared with. Nothing "
        "was read. Add a writer to its file: {{name: objects, kind: collection, envelope: oplog}}"
    )


@with_fields
class DumpUnreadable(SyncError):
    """A dump cannot be read to its end."""

    needs_person = True

    dump: str
    reason: str

    text = "{dump} cannot be read ({reason}). Nothing was sent. Give a complete file, then start again."


@with_fields
class DumpRefused(SyncError):
    """Lines of a dump are bad. A dump with a hole would delete what the hole had."""

    needs_person = True

    dump: str
    problems: "Sequence[tuple[int, str]]"
    """Each bad line with its reason."""
    is_cut_short: bool = False
    """Whether reading ended before the end of the dump, because so many lines are bad."""

    @property
    def lines(self) -> tuple[int, ...]:
        """The numbers of the bad lines."""
        return tuple(number for number, _ in self.problems)

    def __str__(self) -> str:
        named = "; ".join(f"line {number}: {reason}" for number, reason in self.problems[:SHOWN])
        further = len(self.problems) - SHOWN
        more = f"; and {further:,} more" if further > 0 else ""
        least = "at least " if self.is_cut_short else ""
        count = f"{least}{len(self.problems):,} bad line{'' if len(self.problems) == 1 else 's'}"
        return (
            f"{self.dump} has {count}: {named}{more}. Nothing was sent. An object whose line is bad would be "
            "deleted, so none is tolerated: correct the dump, then start again."
        )


@with_fields
class DumpEmpty(SyncError):
    """A dump without objects, which would delete everything."""

    needs_person = True

    dump: str

    text = (
        "{dump} has no object: every object would be deleted. Nothing was sent. If the source really is "
        "empty, start again with `force`."
    )


@with_fields
class StartRefused(SyncError):
    """A value that is no start time of a dump."""

    needs_person = True

    given: str
    problem: str

    text = (
        "The start `{given}` {problem}. Nothing was sent. Give the time at which the dump began, such as "
        "2026-11-17T10:00:00Z, or `newest` for the greatest timestamp in it."
    )


@with_fields
class LimitRefused(SyncError):
    """A value that is no limit of deletes."""

    needs_person = True

    given: str

    text = (
        "The limit `{given}` is neither a number of deletes, such as 500, nor a share of the objects, such "
        "as 10%. Nothing was sent."
    )


@with_fields
class TooManyDeletes(SyncError):
    """A synchronisation would delete more objects than it is allowed to."""

    needs_person = True

    pipeline: str
    deletes: int
    live: int
    allowed: int

    text = (
        "{pipeline}: {deletes:,} of {live:,} objects are not in the dump and would be deleted; {allowed:,} "
        "are allowed. Nothing was sent. See that the dump is complete. If they are to go, start again with a "
        "higher `max_deletes`, or with `force`."
    )


@with_fields
class DiffMissing(SyncError):
    """The result of a comparison is not there any more, or was never written."""

    needs_person = True

    pipeline: str
    run: str

    text = (
        "{pipeline}: there is no comparison of synchronisation {run}, so nothing was sent. Start the "
        "synchronisation again: what was sent before is recognised."
    )


@with_fields
class OplogTopicMissing(SyncError):
    """The topic of the operations does not exist."""

    needs_person = True

    pipeline: str
    topic: str

    text = (
        "{pipeline}: there is no topic {topic}. Nothing was sent. Create it: tidemark topics create "
        "{pipeline}"
    )


@with_fields
class OplogTopicChanged(SyncError):
    """The topic is another one, or has other partitions, than those that the comparison is about."""

    needs_person = True

    pipeline: str
    topic: str
    problem: str

    text = (
        "{pipeline}: topic {topic} {problem}. Nothing more was sent. Run {pipeline}.replicate, which says "
        "what to do, then start the synchronisation again."
    )


@with_fields
class OperationsGone(SyncError):
    """Kafka no longer has the operations since the comparison, so later changes cannot be recognised."""

    needs_person = True

    pipeline: str
    topic: str
    partition: int
    first: int

    text = (
        "{pipeline}: {topic}/{partition} has lost operations from offset {first} on, which came after the "
        "comparison. What they changed must not be corrected, so nothing more was sent. Start the "
        "synchronisation again: what was sent before is recognised."
    )


@with_fields
class CorrectionsVoided(SyncError):
    """Corrections are void again and again, because too much is written between reading and sending."""

    pipeline: str
    topic: str
    left: int
    batches: int

    text = (
        "{pipeline}: {batches} batches of corrections in a row came too late into {topic}, because too many "
        "operations were written meanwhile. {left:,} corrections are not sent; those that were sent count. "
        "Run it again when fewer operations arrive."
    )


@with_fields
class SyncUnanswered(SyncError):
    """A request to Kafka failed."""

    pipeline: str
    what: str
    reason: str

    text = (
        "{pipeline}: {what} ({reason}). What was sent is recognised: run it again when Kafka answers, and "
        "nothing counts twice."
    )


@with_fields
class CollectionBehind(SyncError):
    """The collection does not have everything that the topic had."""

    pipeline: str
    writer: str
    waiting: "Mapping[int, int]"

    def __str__(self) -> str:
        places = ", ".join(f"partition {number} before offset {end}" for number, end in self.waiting.items())
        return (
            f"{self.pipeline}/{self.writer}: {self.pipeline}.replicate has not delivered everything yet: "
            f"{places or 'nothing was delivered'}. Nothing was compared or sent. Run "
            f"{self.pipeline}.replicate; if a gate is closed, see: tidemark status {self.pipeline}"
        )


@with_fields
class CorrectionsMissing(SyncError):
    """Objects differ from what was sent, and no later operation explains it."""

    needs_person = True

    pipeline: str
    objects: "Sequence[str]"
    count: int

    def __str__(self) -> str:
        named = ", ".join(self.objects[:SHOWN])
        more = f" and {self.count - SHOWN:,} more" if self.count > SHOWN else ""
        return (
            f"{self.pipeline}: {self.count:,} objects are not as they were corrected, and no later operation "
            f"explains it: {named}{more}. The corrections were sent. Compare the collection with its log: "
            f"tidemark verify {self.pipeline}"
        )
