"""Distributes the parts of a delivery over Spark's executors."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from tidemark.connections import CassandraConnection
from tidemark.delivery.binding_steps import PartDone, WriteParts, write_part
from tidemark.delivery.state.lease import WriterTicket
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.writer import Part, Writer
from tidemark.log.files.parquet import LogFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_parts_with(spark: "SparkSession") -> WriteParts:
    """A function that writes the parts of a binding in Spark tasks, one each."""

    def write_parts(
        writer: Writer,
        parts: Sequence[Part],
        log: LogFolder,
        acknowledged: Collection[int],
        ticket: WriterTicket,
    ) -> list[PartDone]:
        def write(part: Part) -> PartDone:
            return write_part(writer, part, log, acknowledged, ticket)

        return spark.sparkContext.parallelize(parts, len(parts)).map(write).collect()

    return write_parts


def reload_from(
    connection: CassandraConnection, pipeline: str, writer: str
) -> Callable[[], WriterState | None]:
    """A function that reads a writer's state. It opens its own session, so that it can be sent to tasks."""

    def reload() -> WriterState | None:
        from tidemark.cassandra.session import connect
        from tidemark.consensus.lightweight import LightweightConsensus
        from tidemark.delivery.state.positions import Positions

        return Positions(LightweightConsensus(connect(connection)), pipeline).load(writer)

    return reload
