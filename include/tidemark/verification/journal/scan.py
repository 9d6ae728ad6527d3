"""All heads and rows of a journal keyspace, part by part: what a verification of everything reads.

Rows become digests right where they are read. Parts are ranges of tokens; which ones, and how many, is the
caller's business.
"""

from collections.abc import Iterable, Iterator, Sequence
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
"""The rows of an entity come together, and all have the same."""


def scan_heads(
    connection: CassandraConnection,
    journal: JournalDeclaration,
    parts: Iterable[TokenRange],
    topics: frozenset[str],
) -> Iterator[tuple[str, str, Head]]:
    """The heads of these topics, each with its topic and key."""
    for batch in _scan(connection, journal, journal.tables.metajournal, _HEAD, parts):
        for topic, key, segment, partition, offset, size, *numbers in _values(batch):
            if topic in topics:
                seq_nr, delete_to, created, updated, after, on, record_id, origin = numbers
                yield (
                    topic,
                    key,
                    Head(
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
                    ),
                )


def scan_rows(
    connection: CassandraConnection,
    journal: JournalDeclaration,
    parts: Iterable[TokenRange],
    topics: frozenset[str],
) -> Iterator[tuple[str, str, FoundRow]]:
    """The rows of these topics, each with its topic and key."""
    for batch in _scan(connection, journal, journal.tables.journal, _ROW, parts):
        for topic, key, segment, seq_nr, timestamp, record_id, *others, headers in _values(batch):
            if topic in topics:
                whose = None if record_id is None else _uuid(record_id)
                columns: Sequence[Any] = (*others, dict(headers) if headers else None)
                digest = row_digest(*columns)
                yield topic, key, FoundRow(segment, seq_nr, timestamp, whose, digest)


def _scan(
    connection: CassandraConnection,
    journal: JournalDeclaration,
    table: str,
    columns: Sequence[str],
    parts: Iterable[TokenRange],
) -> Iterator[pa.RecordBatch]:
    session = connect(connection)
    settings = ScanSettings(ConsistencyLevel.name_to_value[journal.consistency.value])
    return scan(session, Selected.of(read_table(session, journal.keyspace, table), columns), parts, settings)


def _values(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch, times in milliseconds."""
    return zip(*(_column(column) for column in batch.columns), strict=True)


def _column(column: pa.Array) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_timestamp(column.type):
        column = pc.divide(column.cast(pa.int64()), 1_000)
    values: list[Any] = column.to_pylist()
    return values
