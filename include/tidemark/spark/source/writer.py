"""Writing a DataFrame, or the batches of a stream, to a table: each task writes one partition, idempotently.

There is no transaction: rows of a failed write stay, and writing them again is harmless.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (  # noqa: TID253  (they are its classes)
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tidemark.cassandra.bulk.statements import RowStatement
from tidemark.cassandra.bulk.writer import BulkCounts, BulkStatement, BulkWriter
from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.spark.source.errors import BatchIncomplete
from tidemark.spark.source.options import CassandraOptions

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ID = "streaming.sql.batchId"
"""The property of a task that has the id of its stream's batch."""


@dataclass(frozen=True)
class WrittenRows(WriterCommitMessage):
    """What one task has written."""

    counts: BulkCounts
    batch: int | None = None
    """Of a stream."""


@dataclass(frozen=True)
class RowWriting:
    """A write: the connection, the options and the statement."""

    connection: CassandraConnection
    options: CassandraOptions
    statement: RowStatement

    def write(self, batches: "Iterator[pa.RecordBatch]") -> BulkCounts:
        """Send the rows of these batches; return when all are acknowledged."""
        session, options = connect(self.connection), self.options
        statement = BulkStatement.of(session.prepare(self.statement.query))
        writer = BulkWriter(
            session,
            options.write_level,
            in_flight=options.writes_in_flight,
            rows=options.batch_rows,
            wire_bytes=options.batch_bytes,
        )
        with writer as bulk:
            for batch in batches:
                for cells in self.statement.rows(batch):
                    bulk.add(statement, cells)
        return writer.counts

    def report(self, messages: Sequence[WriterCommitMessage | None], **about: int) -> None:
        """Log how much was written."""
        said = {"table": str(self.statement.table), "operation": self.options.operation.value}
        _logger().info("rows written", **said, **about, **_total(messages))

    def report_failure(self, messages: Sequence[WriterCommitMessage | None], **about: int) -> None:
        """Log what a failed write has written."""
        said = {"table": str(self.statement.table), "operation": self.options.operation.value}
        _logger().warning("write failed; what was written stays", **said, **about, **_total(messages))


class CassandraWriter(DataSourceArrowWriter):
    """One write into a table."""

    def __init__(self, writing: RowWriting) -> None:
        self._writing = writing

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WrittenRows:
        """Write one partition of the DataFrame."""
        return WrittenRows(self._writing.write(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log how much was written."""
        self._writing.report(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log what a failed write has written."""
        self._writing.report_failure(messages)


class CassandraStreamWriter(DataSourceStreamArrowWriter):
    """The batches of one stream, each written whole before Spark notes its id in the checkpoint."""

    def __init__(self, writing: RowWriting) -> None:
        self._writing = writing

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WrittenRows:
        """Write one partition of a batch."""
        return WrittenRows(self._writing.write(iterator), _batch_of_task())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Accept a batch if every task reports rows of this batch; else raise ``BatchIncomplete``."""
        table = str(self._writing.statement.table)
        for message in messages:
            if not isinstance(message, WrittenRows):
                raise BatchIncomplete(table, batchId, "a task did not say what it has written")
            if message.batch not in (None, batchId):
                raise BatchIncomplete(table, batchId, f"a task has written rows of batch {message.batch}")
        self._writing.report(messages, batch=batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Log what a failed write has written."""
        self._writing.report_failure(messages, batch=batchId)


def _batch_of_task() -> int | None:
    from pyspark import TaskContext

    context = TaskContext.get()
    found = context.getLocalProperty(BATCH_ID) if context else None
    return None if found is None else int(found)


def _logger() -> Any:
    # Every task imports this module; only the end of a write logs.
    import structlog

    return structlog.get_logger()


def _total(messages: Sequence[WriterCommitMessage | None]) -> dict[str, int]:
    done = [each.counts for each in messages if isinstance(each, WrittenRows)]
    return {each.name: sum(getattr(one, each.name) for one in done) for each in fields(BulkCounts)}
