"""The heavy parts of a follow's rounds: small bindings in this process, larger ones on Spark.

A binding itself says where it is captured and delivered, so that rounds over a few records cost what the
records cost, and every attempt at a binding does it in the same place as the attempt before. The
session is opened when a round first needs it, and stays open.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import structlog

from tidemark.app.follow.round_types import RoundTools
from tidemark.app.follow.rounds import Rounds
from tidemark.compaction.merging.merge import Merged, Merging
from tidemark.connections import CassandraConnection, KafkaConnection
from tidemark.delivery.binding_steps import PartDone, WriteParts, write_parts_at_once, write_parts_here
from tidemark.delivery.published_log import LogUnreadable, PublishedLog
from tidemark.delivery.state.lease import LeaseHeld, Reload, WriterTicket
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.writer import Part, Writer
from tidemark.log.expectations import Suite
from tidemark.log.files.parquet import LogFolder
from tidemark.log.kafka_records import RecordReader
from tidemark.log.model.binding import CapturePlace
from tidemark.pipeline.model import Pipeline
from tidemark.spark.engine import engine_error
from tidemark.spark.jobs.capture import SparkCapture
from tidemark.spark.jobs.deliver import reload_from, write_parts_with
from tidemark.spark.jobs.reconcile import reconcile_sample
from tidemark.verification.outputs.reconcile import is_output, reconcile_now, usual_extent
from tidemark.verification.reconcile import unreconciled_after
from tidemark.writers.collection.writer import CollectionWriter
from tidemark.writers.journal.writer import JournalWriter

events = structlog.get_logger()

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]
_WAITING = (JournalWriter, CollectionWriter)
"""Writers that mostly wait for Cassandra: their parts are written in threads."""


def round_tools(
    session: Session,
    reader: RecordReader,
    kafka: KafkaConnection,
    isolation: str,
    folder: LogFolder,
    suite: Suite,
    control: CassandraConnection,
) -> RoundTools:
    """The tools of a run's rounds; ``session`` opens Spark at its first call, for a binding that is too large
    for this process."""
    return RoundTools(
        SparkCapture(session, kafka, isolation, folder, suite, reader),
        write_parts_by_place(session),
        lambda positions, writer: WarmReload(
            positions, writer, reload_from(control, positions.pipeline, writer)
        ),
        lambda error: engine_error(error, "") is not None,
    )


def write_parts_by_place(session: Session) -> WriteParts:
    """A function that writes the parts of bindings that were captured in this process here too, and of others
    in Spark's tasks.

    The limit in the pipeline's file may have changed since a killed attempt left tasks on the engine; a retry
    interrupts them only where it uses the engine itself.
    """

    @cache
    def in_tasks() -> WriteParts:
        return write_parts_with(session())

    def write_parts(
        writer: Writer,
        parts: Sequence[Part],
        log: LogFolder,
        acknowledged: Collection[int],
        ticket: WriterTicket,
    ) -> list[PartDone]:
        if any(part.binding.captured_by is not CapturePlace.PROCESS for part in parts):
            return in_tasks()(writer, parts, log, acknowledged, ticket)
        ticket.confirm()  # another attempt of the same run takes the lease at once, whatever its deadline
        write = write_parts_at_once if isinstance(writer, _WAITING) else write_parts_here
        return write(writer, parts, log, acknowledged, ticket)

    return write_parts


@dataclass(frozen=True)
class WarmReload:
    """Reads a writer's state through the open session of this process; in another process, ``elsewhere``
    does."""

    positions: Positions
    writer: str
    elsewhere: Reload

    def __call__(self) -> WriterState | None:
        """The writer's state now."""
        return self.positions.load(self.writer)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self.elsewhere,)


def _itself(reload: Reload) -> Reload:
    return reload


class SampledReconciliation:
    """Compares a sample of every target with the log, from the position of the last comparison on."""

    def __init__(self, rounds: Rounds, pipeline: str, suite: Suite) -> None:
        self._rounds, self._pipeline, self._suite = rounds, pipeline, suite
        self._compared = {one.name: self._position(one.name) for _, one in rounds.writers}
        """By the consumer's name: after a handover, that of another rendition is compared."""

    def __call__(self) -> list[str]:
        """Compare all writers with open gates; returns those whose gates this has closed.

        A writer that cannot be compared now does not keep the others from being followed: the next time
        compares it from the same position on.
        """
        rounds = self._rounds
        with rounds.log(f"{rounds.holder}, reconciliation") as log:
            return [name for name, writer in rounds.writers if not self._is_right(writer, log)]

    def _is_right(self, writer: Writer, log: PublishedLog) -> bool:
        """Whether nothing is wrong with a target, as far as is known."""
        name = writer.name
        try:
            state = self._rounds.positions.load(name)
            if state is None or state.gate is not None:
                return True
            result = self._compare(writer, log, self._compared.get(name, state.position), state.position)
        except LogUnreadable:
            raise
        except LeaseHeld as held:
            events.info("not reconciled: another process has the writer", writer=name, reason=str(held))
            return True
        except Exception as error:
            events.warning("not reconciled", writer=name, error=f"{type(error).__name__}: {error}")
            return True
        self._compared[name] = state.position
        return result is None or bool(result["passed"])

    def _compare(
        self, writer: Writer, log: PublishedLog, before: int, position: int
    ) -> dict[str, Any] | None:
        rounds = self._rounds
        if is_output(writer):
            wanted = usual_extent(writer, before, everything=False)
            return reconcile_now(writer, log, rounds.positions, wanted, rounds.holder) if wanted else None
        if not isinstance(writer, JournalWriter):
            return None
        after = unreconciled_after(self._pipeline, log.folder.root, writer.name, before, position)
        if after is None:
            return None
        return reconcile_sample(writer, log, rounds.positions, self._suite, after, rounds.holder)

    def _position(self, writer: str) -> int:
        state = self._rounds.positions.load(writer)
        return state.position if state else -1


class SmallFileMerging:
    """Merges small files of closed segments; publications archive bindings themselves.

    Kept for a run, so that a segment without anything to merge is looked at once. Nothing new in the log
    costs one read of the control plane.
    """

    def __init__(self, pipeline: Pipeline, rounds: Rounds) -> None:
        log = pipeline.log
        self._pipeline, self._rounds = pipeline.name, rounds
        self._merging = Merging(rounds.control, log.path, log.segment_bytes)
        self._nothing_at: str | None = None
        """The manifest in which there was nothing to merge."""

    def __call__(self, is_over: Callable[[], bool]) -> None:
        """Merge until there is nothing left to merge, or the run is over: then the merge under way is
        abandoned before its next group of files.

        Where another process holds the log, or an input is damaged, the next time does it.
        """
        total = Merged()
        try:
            manifest = self._rounds.control.log_head().manifest
            while not is_over() and manifest != self._nothing_at:
                # A name of its own, so that the lease excludes other merges of this run and its attempts.
                holder = f"{self._rounds.holder}, merge {uuid4().hex[:8]}"
                merged = self._merging.merge(holder, is_over=is_over)
                total += merged
                if merged.is_nothing:
                    is_all_merged = merged.held_by is None and not is_over()
                    self._nothing_at = manifest if is_all_merged else None
                    break
                manifest = self._rounds.control.log_head().manifest
        except Exception as error:
            events.warning("not merged", pipeline=self._pipeline, error=f"{type(error).__name__}: {error}")
        if not total.is_nothing or total.held_by is not None:
            events.info("merged", pipeline=self._pipeline, **asdict(total))
