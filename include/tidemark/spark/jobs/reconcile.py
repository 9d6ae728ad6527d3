"""Verification after a delivery: a sample in the driver, or more with Spark, and the record of its result."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.log.expectations import Suite
from tidemark.spark.jobs.verify import verify_with_spark
from tidemark.verification.reconcile import reconcile
from tidemark.verification.result import Verification
from tidemark.verification.sample import verify_sample
from tidemark.verification.selection import EVERYTHING, Entity, EntitySelection
from tidemark.writers.journal.writer import JournalWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class VerifiedInterval:
    """How much a run verifies: everything, an interval of bindings, or by default a sample."""

    everything: bool = False
    from_t: int | None = None
    to_t: int | None = None
    """Bindings that were delivered again: all entities in them are verified. Both ends are included."""

    @property
    def selection(self) -> EntitySelection | None:
        """The entities to verify with Spark; None for a sample."""
        if self.everything:
            return EVERYTHING
        if self.from_t is None and self.to_t is None:
            return None
        return EntitySelection(from_t=self.from_t, to_t=self.to_t)


def reconcile_writer(
    spark: "SparkSession | None",
    writer: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    suite: Suite,
    extent: VerifiedInterval,
    after: int,
    holder: str,
) -> dict[str, Any] | None:
    """Verify a writer's tables after a delivery, and record the result.

    ``spark``: needed where ``extent`` is more than a sample. ``after``: the writer's position before the
    delivery. Returns the result for the summary; None where the declaration switches verification off, or
    where nothing has to be in the tables yet.
    """
    selection = extent.selection
    if selection is None:
        return reconcile_sample(writer, log, positions, suite, after, holder)
    if not _expects_anything(writer, positions):
        return None
    if spark is None:
        raise ValueError("a selection is verified on Spark, not in the process")
    found = verify_with_spark(spark, writer, log, positions, selection)
    return _judged(writer, log, positions, suite, holder, found, ())


def reconcile_sample(
    writer: JournalWriter, log: PublishedLog, positions: Positions, suite: Suite, after: int, holder: str
) -> dict[str, Any] | None:
    """As ``reconcile_writer``, for a sample, which needs no Spark."""
    count = writer.declared.reconcile
    if not count or not _expects_anything(writer, positions):
        return None
    found, sample = verify_sample(writer, log, positions, after, count)
    return _judged(writer, log, positions, suite, holder, found, sample)


def _expects_anything(writer: JournalWriter, positions: Positions) -> bool:
    """Without a message of its re-created topic, a writer has no tables yet."""
    state = positions.load(writer.name)
    return state is not None and state.expects_anything


def _judged(
    writer: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    suite: Suite,
    holder: str,
    found: Verification,
    sample: tuple[Entity, ...],
) -> dict[str, Any]:
    record = reconcile(writer, positions, log.folder.root, found, sample, suite, holder)
    return {
        "position": record.position,
        "passed": record.passed,
        "summary": record.summary,
        "entities": found.entities,
        "same": found.same,
        "different": found.different,
        "not_provable": sum(found.not_provable.values()),
        "seconds": round(found.seconds, 3),
    }
