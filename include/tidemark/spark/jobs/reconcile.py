"""What is verified after a delivery: a sample in this process, or more with Spark, and what comes of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.log.expectations import Suite
from tidemark.spark.jobs.verify import verify_with_spark
from tidemark.verification.reconcile import reconcile
from tidemark.verification.sample import verify_sample
from tidemark.verification.selection import EVERYTHING, Entity, EntitySelection
from tidemark.writers.journal.writer import JournalWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class VerifiedInterval:
    """How much a run verifies."""

    everything: bool = False
    from_t: int | None = None
    to_t: int | None = None
    """The bindings of this interval were delivered again: all entities they touch."""

    @property
    def selection(self) -> EntitySelection | None:
        """What Spark is asked for; None where a sample will do."""
        if self.everything:
            return EVERYTHING
        if self.from_t is None and self.to_t is None:
            return None
        return EntitySelection(from_t=self.from_t, to_t=self.to_t)


def reconcile_writer(
    spark: "SparkSession",
    writer: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    suite: Suite,
    extent: VerifiedInterval,
    after: int,
    holder: str,
) -> dict[str, Any] | None:
    """Verify a writer's tables after a delivery that began after an id; None where nothing is asked for, or
    nothing is to be there."""
    state = positions.load(writer.name)
    if state is None or not state.expects_anything:
        return None  # one that waits for the first message of a topic made again has no tables yet
    root, count = log.folder.root, writer.declared.reconcile
    sample: tuple[Entity, ...] = ()
    if selection := extent.selection:
        found = verify_with_spark(spark, writer, log, positions, selection)
    elif count:
        found, sample = verify_sample(writer, log, positions, after, count)
    else:
        return None
    record = reconcile(writer, positions, root, found, sample, suite, holder)
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
