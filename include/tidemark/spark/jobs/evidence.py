"""Everything that is known of entities, in one shape, so that one shuffle brings each entity's together.

A record says whose it is, what it is and when its turn comes; the rest is packed. Rows of tables are digests
by now: payloads of theirs never leave the task that has read them.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import pyarrow as pa
from msgspec import msgpack

from tidemark.journal.head import Head
from tidemark.journal.visible import FoundRow
from tidemark.verification.journal.judge import LoggedRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORDS_A_BATCH = 2_000
BYTES_A_BATCH = 8_000_000

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("second", pa.int64(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
    ]
)


class EvidenceKind(IntEnum):
    """What a record is, in the order in which they are heard."""

    HEAD = 0
    OTHER_HEAD = 1
    """Of the keyspace that is compared with the first."""
    MESSAGE = 2
    ROW = 3
    OTHER_ROW = 4
    NAMED = 5
    """Says nothing but that there is somebody of that name."""


class Evidence(NamedTuple):
    """One record."""

    topic: str
    key: str
    kind: int
    first: int
    """By these two it is sorted among its kind: id, or sequence number and timestamp."""
    second: int
    body: bytes


_encode = msgpack.Encoder().encode
_decode_head = msgpack.Decoder(Head).decode
_decode_record = msgpack.Decoder(LoggedRecord).decode
_decode_row = msgpack.Decoder(tuple[int, int, int, bytes | None, bytes]).decode


@lru_cache(maxsize=1024)
def _uuid(data: bytes) -> UUID:
    return UUID(bytes=data)


def of_message(topic: str, key: str, record: LoggedRecord) -> Evidence:
    """A message of the log."""
    return Evidence(topic, key, EvidenceKind.MESSAGE, record.id, 0, _encode(record))


def to_message(body: bytes) -> LoggedRecord:
    """The message of a record."""
    return _decode_record(body)


def of_head(topic: str, key: str, head: Head, kind: EvidenceKind = EvidenceKind.HEAD) -> Evidence:
    """A row of ``metajournal``."""
    return Evidence(topic, key, kind, head.segment, 0, _encode(head))


def to_head(body: bytes) -> Head:
    """The head of a record."""
    return _decode_head(body)


def of_row(topic: str, key: str, row: FoundRow, kind: EvidenceKind = EvidenceKind.ROW) -> Evidence:
    """A row of ``journal``."""
    segment, seq_nr, timestamp, record_id, digest = row
    whose = None if record_id is None else record_id.bytes
    body = _encode((segment, seq_nr, timestamp, whose, digest))
    return Evidence(topic, key, kind, seq_nr, timestamp, body)


def to_row(body: bytes) -> FoundRow:
    """The row of a record."""
    segment, seq_nr, timestamp, whose, digest = _decode_row(body)
    return FoundRow(segment, seq_nr, timestamp, None if whose is None else _uuid(whose), digest)


def batches_of(records: Iterable[Evidence]) -> Iterator[pa.RecordBatch]:
    """The records as Spark takes them, neither too many nor too much at once."""
    waiting: list[Evidence] = []
    size = 0
    for record in records:
        waiting.append(record)
        size += len(record.body)
        if len(waiting) >= RECORDS_A_BATCH or size >= BYTES_A_BATCH:
            yield _batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(records: list[Evidence]) -> pa.RecordBatch:
    columns = zip(*records, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def bring_together(evidence: "DataFrame", partitions: int) -> "DataFrame":
    """Every entity whole in one partition, its records in the order in which they are heard."""
    return evidence.repartition(partitions, "topic", "key").sortWithinPartitions(*SCHEMA.names[:-1])


def by_entity(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[tuple[str, str], Iterator[tuple[int, bytes]]]]:
    """The entities of a partition, each with its records; an entity is used up before the next one."""
    for entity, records in groupby(_records(batches), key=itemgetter(0, 1)):
        yield entity, ((kind, body) for _, _, kind, body in records)


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        columns = (batch[name].to_pylist() for name in ("topic", "key", "kind", "body"))
        yield from zip(*columns, strict=True)
