"""Evidence about entities: messages, heads and rows in one schema, so that one shuffle groups them by entity.

A record has its entity, its kind and its sort order; the rest is packed into ``body``. A row of a table is
represented by its digest: payloads never leave the task that read them.
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

_TYPES = {"kind": pa.int8(), "first": pa.int64(), "second": pa.int64(), "body": pa.binary()}
SCHEMA = pa.schema(
    [
        pa.field(name, type_, nullable=False)
        for name, type_ in {"topic": pa.string(), "key": pa.string(), **_TYPES}.items()
    ]
)


class EvidenceKind(IntEnum):
    """What a record is. An entity's records are sorted by it."""

    HEAD = 0
    OTHER_HEAD = 1
    """A head of the second keyspace of a comparison."""
    MESSAGE = 2
    ROW = 3
    OTHER_ROW = 4
    """A row of the second keyspace of a comparison."""
    NAMED = 5
    """Without content: the entity is to be judged, even where the log has no message of it."""


class Evidence(NamedTuple):
    """One record of evidence about an entity."""

    topic: str
    key: str
    kind: int
    first: int
    """The sort order within a kind, with ``second``: the id, or sequence number and timestamp."""
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
    """The message that ``of_message`` packed."""
    return _decode_record(body)


def of_head(topic: str, key: str, head: Head, kind: EvidenceKind = EvidenceKind.HEAD) -> Evidence:
    """A row of ``metajournal``."""
    return Evidence(topic, key, kind, head.segment, 0, _encode(head))


def to_head(body: bytes) -> Head:
    """The head that ``of_head`` packed."""
    return _decode_head(body)


def of_row(topic: str, key: str, row: FoundRow, kind: EvidenceKind = EvidenceKind.ROW) -> Evidence:
    """A row of ``journal``."""
    segment, seq_nr, timestamp, record_id, digest = row
    id_bytes = None if record_id is None else record_id.bytes
    body = _encode((segment, seq_nr, timestamp, id_bytes, digest))
    return Evidence(topic, key, kind, seq_nr, timestamp, body)


def to_row(body: bytes) -> FoundRow:
    """The row that ``of_row`` packed."""
    segment, seq_nr, timestamp, id_bytes, digest = _decode_row(body)
    return FoundRow(segment, seq_nr, timestamp, None if id_bytes is None else _uuid(id_bytes), digest)


def batches_of(records: Iterable[Evidence]) -> Iterator[pa.RecordBatch]:
    """The records as Arrow batches, bounded in number and in bytes."""
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
    """All records of an entity in one partition, sorted by entity and kind."""
    return evidence.repartition(partitions, "topic", "key").sortWithinPartitions(*SCHEMA.names[:-1])


def by_entity(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[tuple[str, str], Iterator[tuple[int, bytes]]]]:
    """The entities of a partition, as (topic, key), each with its records as (kind, body).

    Like ``groupby``: the records of an entity have to be read before the next entity is.
    """
    for entity, records in groupby(_records(batches), key=itemgetter(0, 1)):
        yield entity, ((kind, body) for _, _, kind, body in records)


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        columns = (batch[name].to_pylist() for name in ("topic", "key", "kind", "body"))
        yield from zip(*columns, strict=True)
