"""Writes a DataFrame into a table: each task its partition, in batches, idempotent.

What a failed write has written stays: rows have no transaction around them. Writing again is harmless.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (  # noqa: TID253  (they are its classes)
    DataSourceArrowWriter,
    WriterCommitMessage,
)

from tidemark.cassandra.bulk import BulkCounts, BulkStatement, BulkWriter
from tidemark.cassandra.insert import Insert
from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.spark.cassandra_options import CassandraOptions

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has written."""

    counts: BulkCounts


class CassandraWriter(DataSourceArrowWriter):
    """One write into a table."""

    def __init__(self, connection: CassandraConnection, options: CassandraOptions, insert: Insert) -> None:
        self._connection, self._options, self._insert = connection, options, insert

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        """Write one partition of the DataFrame."""
        session, options = connect(self._connection), self._options
        statement = BulkStatement.of(session.prepare(self._insert.query))
        writer = BulkWriter(
            session,
            options.write_level,
            in_flight=options.writes_in_flight,
            rows=options.batch_rows,
            wire_bytes=options.batch_bytes,
        )
        with writer as bulk:
            for batch in iterator:
                for cells in self._insert.rows(batch):
                    bulk.add(statement, cells)
        return Written(writer.counts)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Say how much was written."""
        _logger().info("rows written", table=str(self._insert.table), **_total(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Say what is there nevertheless."""
        total = _total(messages)
        _logger().warning("write failed; what was written stays", table=str(self._insert.table), **total)


def _logger() -> Any:
    # Every task imports this module; only the end of a write has something to say.
    import structlog

    return structlog.get_logger()


def _total(messages: Sequence[WriterCommitMessage | None]) -> dict[str, int]:
    done = [each.counts for each in messages if isinstance(each, Written)]
    return {each.name: sum(getattr(one, each.name) for one in done) for each in fields(BulkCounts)}
