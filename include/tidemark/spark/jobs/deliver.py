"""Distributes the parts of a delivery over Spark's executors.

An engine that stays up may still run parts of a killed attempt, and plain writes are not fenced. So every
part reads the lease anew before it writes, and checks its deadline before every batch: another holder gets
the lease only after that deadline. The same holder gets it at once; what parts of its earlier attempt still
write is what the new ones write.

A new holder also interrupts what is left over. That only ends it sooner, and reaches one session: that of the
same kind of work and the same library. ``orders.deliver`` does not interrupt a part of ``orders.follow``.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.consensus.lightweight import LightweightConsensus
from tidemark.delivery.binding_steps import PartDone, WriteParts, write_part
from tidemark.delivery.state.lease import Reload, WriterTicket
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.transforms.function import modules_called
from tidemark.delivery.writer import Part, Writer
from tidemark.log.files.parquet import LogFolder
from tidemark.spark.jobs.tasks import call_in_tasks, interrupt, tagged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class PartWriting:
    """Writes a part in a task, for the holder of a lease."""

    writer: Writer
    log: LogFolder
    acknowledged: Collection[int]
    ticket: WriterTicket

    def __call__(self, part: Part) -> PartDone:
        """Write the part, unless the lease is another holder's by now."""
        self.ticket.confirm()
        return write_part(self.writer, part, self.log, self.acknowledged, self.ticket)


def write_parts_with(spark: "SparkSession") -> WriteParts:
    """A function that writes the parts of a binding in Spark tasks, one each."""
    tokens: dict[str, int] = {}

    def write_parts(
        writer: Writer,
        parts: Sequence[Part],
        log: LogFolder,
        acknowledged: Collection[int],
        ticket: WriterTicket,
    ) -> list[PartDone]:
        tag = writer_tag(ticket.pipeline, ticket.writer)
        if tokens.get(tag) != ticket.lease.token:
            interrupt(spark, tag)
            tokens[tag] = ticket.lease.token
        with tagged(spark, tag):
            work = PartWriting(writer, log, frozenset(acknowledged), ticket)
            return call_in_tasks(spark, work, parts, function_modules(writer))

    return write_parts


def writer_tag(pipeline: str, writer: str) -> str:
    """The tag of the operations that write for a writer."""
    return f"tidemark/{pipeline}/{writer}"


def function_modules(writer: Writer) -> Iterator[str]:
    """The modules of the functions that the writer's transforms call."""
    return modules_called(getattr(getattr(writer, "declared", None), "transforms", ()))


@dataclass(frozen=True)
class StateReload:
    """Reads a writer's state with a session of its own, so that it can be sent to tasks."""

    connection: CassandraConnection
    pipeline: str
    writer: str

    def __call__(self) -> WriterState | None:
        """The writer's state; None where it is not registered."""
        consensus = LightweightConsensus(connect(self.connection))
        return Positions(consensus, self.pipeline).load(self.writer)


def reload_from(connection: CassandraConnection, pipeline: str, writer: str) -> Reload:
    """A function that reads a writer's state wherever it is called."""
    return StateReload(connection, pipeline, writer)
