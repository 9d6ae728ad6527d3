"""A delivery, spread over Spark's executors: binding by binding, the position moved after each.

A writer that fails keeps what it has committed; the others are not touched by it.
"""

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import structlog

from tidemark.delivery.positions import Positions
from tidemark.errors import TidemarkError
from tidemark.log.binding import NOTHING_YET, Binding
from tidemark.log.control import LogControl
from tidemark.log.files import LogFolder
from tidemark.log.manifest import LogFile, Manifest
from tidemark.spark.job import cause_of
from tidemark.writers.writer import Part, Writer, Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

events = structlog.get_logger()


class WritersFailed(TidemarkError):
    """One or several writers could not finish; the others did."""

    def __init__(self, pipeline: str, failures: dict[str, str]) -> None:
        what = "; ".join(f"{writer}: {reason}" for writer, reason in failures.items())
        super().__init__(
            f"{pipeline}: not everything was delivered. {what}. What was finished is kept; "
            "put the cause right and clear the deliver task to go on from there."
        )
        self.pipeline, self.failures = pipeline, failures


@dataclass(frozen=True, slots=True)
class Log:
    """A published log, opened for delivery."""

    control: LogControl
    manifest: Manifest
    root: str

    def waiting(self, position: int) -> Iterator[tuple[Binding, Sequence[LogFile]]]:
        """The published bindings beyond a position, with their files, oldest first."""
        for binding in self.control.bindings_after(position):
            if binding.t <= self.manifest.t:
                yield binding, self.manifest.files_at(binding.t)


@dataclass(frozen=True, slots=True)
class Delivered:
    """How far a writer has come, and what was done on the way."""

    position: int
    total: Written
    failure: str | None = None


def deliver_to(spark: "SparkSession", writer: Writer, log: Log, positions: Positions) -> Delivered:
    """Bring one writer to the end of the log."""
    known = positions.load(writer.name)
    position, total = known.position if known else NOTHING_YET, Written()
    try:
        state = positions.register(writer.name, writer.shape)
        writer.prepare()
        for binding, files in log.waiting(state.position):
            total += write_binding(spark, writer, binding, files, log)
            state = positions.commit(state, binding.end)
            position = state.position
            events.info("delivered", writer=writer.name, t=binding.t, position=position)
    except Exception as error:
        events.error("writer failed", writer=writer.name, position=position)
        traceback.print_exc()
        return Delivered(position, total, f"stopped after id {position}: {cause_of(error)}")
    return Delivered(position, total)


def write_binding(
    spark: "SparkSession", writer: Writer, binding: Binding, files: Sequence[LogFile], log: Log
) -> Written:
    """Write all parts of one binding, then what comes after them."""
    pipeline, root = log.control.pipeline, log.root

    def write(part: Part) -> Written:
        return writer.write(part, LogFolder(pipeline, root))

    parts = writer.cut(binding, files)
    results = spark.sparkContext.parallelize(parts, len(parts)).map(write).collect() if parts else []
    writer.finish(binding)
    return reduce(add, results, Written())
