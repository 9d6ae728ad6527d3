"""Scans all heads and rows of a journal keyspace, by token ranges that the caller chooses.

Rows are reduced to digests where they are read, so that their payloads are never sent anywhere.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.cassandra.driver import ConsistencyLevel
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import ScanSettings, scan
from tidemark.cassandra.session import connect
from tidemark.cassandra.table import read_table
from tidemark.cassandra.token_ranges import TokenRange
from tidemark.connections import CassandraConnection
from tidemark.journal.digest import COLUMNS, row_digest
from tidemark.journal.head import Head
from tidemark.journal.segments import stored_segment_size
from tidemark.journal.visible import FoundRow
from tidemark.pipeline.model import JournalDeclaration

_HEAD = (
    *("topic", "id", "segment", "partition", "offset", "segment_size", "seq_nr", "delete_to", "created"),
    *("updated", "expire_after", "expire_on", "record_id", "origin"),
)
_ROW = ("topic", "id", "segment", "seq_nr", "timestamp", "meta_record_id", *COLUMNS)
_DAY = 86_400_000_000_000
_uuid = lru_cache(maxsize=65_536)(UUID)
"""Cached, because the rows of an entity are adjacent and have the same record id."""


@dataclass(frozen=True)
class JournalScan:
    """The tables of a journal keyspace; only heads and rows of these topics are returned."""

    connection: CassandraConnection
    journal: JournalDeclaration
    topics: frozenset[str]

    def heads(self, parts: Iterable[TokenRange]) -> Iterator[tuple[str, str, Head]]:
        """The heads in these token ranges, each with its topic and key."""
        for topic, key, segment, partition, offset, size, *numbers in self._scan(
            self.journal.tables.metajournal, _HEAD, parts
        ):
            seq_nr, delete_to, created, updated, after, on, record_id, origin = numbers
            head = Head(
                segment,
                partition or 0,
                offset or 0,
                stored_segment_size(size),
                seq_nr or 0,
                delete_to,
                created or 0,
                updated or 0,
                None if after is None else after["days"] * _DAY + after["nanoseconds"],
                on,
                None if record_id is None else _uuid(record_id),
                origin,
            )
            yield topic, key, head

    def rows(self, parts: Iterable[TokenRange]) -> Iterator[tuple[str, str, FoundRow]]:
        """The rows in these token ranges, each with its topic and key."""
        for topic, key, segment, seq_nr, timestamp, record_id, *others, headers in self._scan(
            self.journal.tables.journal, _ROW, parts
        ):
            row_record_id = None if record_id is None else _uuid(record_id)
            columns: Sequence[Any] = (*others, dict(headers) if headers else None)
            yield topic, key, FoundRow(segment, seq_nr, timestamp, row_record_id, row_digest(*columns))

    def _scan(
        self, table: str, columns: Sequence[str], parts: Iterable[TokenRange]
    ) -> Iterator[tuple[Any, ...]]:
        session = connect(self.connection)
        settings = ScanSettings(ConsistencyLevel.name_to_value[self.journal.consistency.value])
        selected = Selected.of(read_table(session, self.journal.keyspace, table), columns)
        for batch in scan(session, selected, parts, settings):
            yield from (values for values in _values(batch) if values[0] in self.topics)


def _values(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch as tuples, times in milliseconds."""
    return zip(*(_column(column) for column in batch.columns), strict=True)


def _column(column: pa.Array) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_timestamp(column.type):
        column = pc.divide(column.cast(pa.int64()), 1_000)
    values: list[Any] = column.to_pylist()
    return values
