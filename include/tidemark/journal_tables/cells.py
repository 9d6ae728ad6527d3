"""Encodes rows, heads and tombstones of a journal as the bound values of statements. Uses no session.

The order of the columns differs from the tables'. The partition key is first, because the token is computed
from it. Columns of fixed width are adjacent, so that one ``struct`` call packs several of them.
"""

from functools import lru_cache
from struct import Struct

from tidemark.cassandra import cells
from tidemark.journal.codec.expire_after import duration
from tidemark.journal.effect import Row
from tidemark.journal.head import Head

ROW_COLUMNS = (
    *("id", "topic", "segment", "seq_nr", "partition", "offset", "timestamp", "meta_record_id", "tags"),
    *("metadata", "origin", "version", "payload_type", "payload_txt", "payload_bin", "headers"),
)
"""The columns of ``journal`` in the order of their values. The write time is the last value."""
HEAD_COLUMNS = (
    *("topic", "segment", "id", "partition", "offset", "segment_size", "seq_nr", "delete_to", "created"),
    *("created_date", "updated", "expire_after", "expire_on", "record_id", "origin"),
)
"""The columns of ``metajournal`` in the order of their values. The write time is the last value."""

_pack_place = Struct(">iqiqiiiqiq").pack
"""segment, seq_nr, partition, offset, timestamp."""
_pack_head_place = Struct(">iiiqiiiq").pack
"""partition, offset, segment_size, seq_nr."""
_pack_long = Struct(">iq").pack
_MOST_OF_PARTITION_KEY = 65_535 - 8 - 3 * 3
"""The bytes that key and topic may have together. The segment takes 8 of Cassandra's 65,535 bytes, and the
framing of the three components 3 each."""
_NOTHING = cells.text_set(())
_text = lru_cache(maxsize=4096)(cells.text)
"""Cached, for short texts that repeat."""


def longest_key(topic: str) -> int:
    """The most bytes of an entity's key, which shares the partition key of ``journal`` with the topic."""
    return _MOST_OF_PARTITION_KEY - len(topic.encode())


def is_too_long(topic: str, key: str) -> bool:
    """Whether the key is too long for the partition key of ``journal``."""
    return len(key.encode()) > longest_key(topic)


def row_cells(row: Row) -> bytes:
    """The values of an INSERT into ``journal``. A None is left unset, so the cell is not written."""
    (
        key,
        topic,
        segment,
        seq_nr,
        partition,
        offset,
        timestamp,
        origin,
        version,
        record_id,
        tags,
        metadata,
        payload_type,
        payload_txt,
        payload_bin,
        headers,
        write_time,
    ) = row
    return b"".join(
        (
            cells.text(key),
            _text(topic),
            _pack_place(8, segment, 8, seq_nr, 4, partition, 8, offset, 8, timestamp),
            cells.uuid(record_id),
            cells.text_set(tags) if tags else _NOTHING,
            _text(metadata) if len(metadata) < 64 else cells.text(metadata),
            _text(origin),
            _text(version),
            _text(payload_type),
            cells.text(payload_txt),
            cells.blob(payload_bin),
            cells.text_map(headers) if headers else _NOTHING,
            _pack_long(8, write_time),
        )
    )


def row_tombstone_cells(row: Row) -> bytes:
    """The values of a DELETE of one row of ``journal``, at the row's write time: the tombstone wins the
    tie."""
    key = (cells.text(row.id), _text(row.topic), cells.bigint(row.segment), cells.bigint(row.seq_nr))
    return b"".join((_pack_long(8, row.write_time), *key, cells.timestamp(row.timestamp)))


def segment_tombstone_cells(topic: str, key: str, segment: int, up_to: int | None, write_time: int) -> bytes:
    """The values of a DELETE of a segment of ``journal``, or of its rows up to a sequence number."""
    place = _pack_long(8, write_time) + cells.text(key) + _text(topic) + _pack_long(8, segment)
    return place if up_to is None else place + _pack_long(8, up_to)


def head_cells(topic: str, key: str, head: Head, write_time: int) -> bytes:
    """The values of an INSERT into ``metajournal``. A None is written as null.

    Otherwise a value of an older head, written earlier or arriving late, would remain visible.
    """
    after = None if head.expire_after is None else duration(head.expire_after)
    return b"".join(
        (
            _text(topic),
            _pack_long(8, head.segment),
            cells.text(key),
            _pack_head_place(4, head.partition, 8, head.offset, 4, head.segment_size, 8, head.seq_nr),
            cells.bigint(head.delete_to, cells.NULL),
            cells.timestamp(head.created),
            cells.date(head.created_date),
            cells.timestamp(head.updated),
            cells.duration(after, cells.NULL),
            cells.date(head.expire_on, cells.NULL),
            cells.uuid(head.record_id, cells.NULL),
            _text(head.origin, cells.NULL),
            _pack_long(8, write_time),
        )
    )


def head_tombstone_cells(topic: str, key: str, segment: int, write_time: int) -> bytes:
    """The values of a DELETE of a row of ``metajournal``."""
    return _pack_long(8, write_time) + _text(topic) + _pack_long(8, segment) + cells.text(key)
