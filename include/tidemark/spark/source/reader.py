"""Reading a table for Spark: splits are planned in the driver, and each is read by a task."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (  # noqa: TID253  (they are its classes)
    DataSourceReader,
    Filter,
    InputPartition,
)

from tidemark.cassandra.driver import Session
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import Part, ScanSettings, scan
from tidemark.cassandra.session import connect
from tidemark.cassandra.size import estimated_bytes, ring_tokens
from tidemark.cassandra.token_ranges import TokenRange, cut_ring, deal
from tidemark.connections import CassandraConnection
from tidemark.spark.source.filters import Pushed, push
from tidemark.spark.source.options import CassandraOptions

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS_A_CORE = 2
RANGES_A_SPLIT = 8
"""Several, so that a task reads some concurrently and none takes long."""
KEYS_A_SPLIT = 250
"""Fewer keys do not pay for a task of their own."""
KEYS_IN_FLIGHT = 16


@dataclass
class Split(InputPartition):
    """What one task reads."""

    parts: tuple[Part, ...]


class CassandraReader(DataSourceReader):
    """One read of a table, whole."""

    def __init__(
        self, connection: CassandraConnection, options: CassandraOptions, selected: Selected, cores: int
    ) -> None:
        self._connection, self._options, self._selected = connection, options, selected
        self._splits = SPLITS_A_CORE * cores
        self._pushed = Pushed()

    def partitions(self) -> Sequence[InputPartition]:
        """Splits that together cover everything that is asked for."""
        keys = self._pushed.keys
        if keys is not None:
            count = max(min(self._splits, -(-len(keys) // KEYS_A_SPLIT)), 1)
            return [Split(keys[number::count]) for number in range(count)]
        session = connect(self._connection)
        splits = self._options.splits or self._enough_splits(session)
        ranges = cut_ring(ring_tokens(session), splits * RANGES_A_SPLIT)
        return [Split(tuple(group)) for group in deal(ranges, splits)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows of one split."""
        assert isinstance(partition, Split)
        options, parts = self._options, partition.parts
        is_scan = any(isinstance(part, TokenRange) for part in parts)
        in_flight = options.reads_in_flight if is_scan else KEYS_IN_FLIGHT
        settings = ScanSettings(options.read_level, options.fetch_rows, in_flight)
        session, pushed = connect(self._connection), self._pushed
        for batch in scan(session, self._selected, parts, settings, pushed.restrictions):
            for name in pushed.without_nulls:
                if batch.column(name).null_count:
                    batch = batch.filter(batch.column(name).is_valid())
            yield batch

    def _enough_splits(self, session: Session) -> int:
        table, most = self._selected.table, self._options.split_megabytes * 2**20
        return max(self._splits, -(-estimated_bytes(session, table.keyspace, table.name) // most))


class PushingReader(CassandraReader):
    """One read of what filters leave of a table. Only with ``own_scans``: scans must not share a plan."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that select partitions or slices of them; returns those that Spark must apply."""
        # Called again for the same query: the last call counts.
        self._pushed = push(self._selected.table, filters)
        return [each for each in filters if not any(each is one for one in self._pushed.settled)]
