"""Rows, heads and tombstones of a journal as the cells that Cassandra takes. Knows no session and no rules.

The order of the columns is this module's own: what has a fixed width stands together, so that a row is packed
in few steps, and the partition key stands first, where its token is computed from.
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
"""Of ``journal``; behind them comes the write time."""
HEAD_COLUMNS = (
    *("topic", "segment", "id", "partition", "offset", "segment_size", "seq_nr", "delete_to", "created"),
    *("created_date", "updated", "expire_after", "expire_on", "record_id", "origin"),
)
"""Of ``metajournal``; behind them comes the write time."""

_place = Struct(">iqiqiiiqiq").pack
"""segment, seq_nr, partition, offset, timestamp."""
_head_place = Struct(">iiiqiiiq").pack
"""partition, offset, segment_size, seq_nr."""
_long = Struct(">iq").pack
_MOST_OF_PARTITION_KEY = 65_535 - 8 - 3 * 3
"""Without the segment, and without what stands around each of the three."""
_NOTHING = cells.text_set(())
_text = lru_cache(maxsize=4096)(cells.text)
"""For text that comes again and again; what it keeps is short."""


def longest_key(topic: str) -> int:
    """How many bytes the key of an entity may have: it shares ``journal``'s partition key with the topic."""
    return _MOST_OF_PARTITION_KEY - len(topic.encode())


def is_too_long(topic: str, key: str) -> bool:
    """Whether Cassandra has no place for an entity of this key."""
    return len(key.encode()) > longest_key(topic)


def row_cells(row: Row) -> bytes:
    """An INSERT into ``journal``; what the row has not is left as it is."""
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
            _place(8, segment, 8, seq_nr, 4, partition, 8, offset, 8, timestamp),
            cells.uuid(record_id),
            cells.text_set(tags) if tags else _NOTHING,
            _text(metadata) if len(metadata) < 64 else cells.text(metadata),
            _text(origin),
            _text(version),
            _text(payload_type),
            cells.text(payload_txt),
            cells.blob(payload_bin),
            cells.text_map(headers) if headers else _NOTHING,
            _long(8, write_time),
        )
    )


def row_tombstone_cells(row: Row) -> bytes:
    """A DELETE of one row of ``journal``, at the row's own write time: a tombstone wins a tie."""
    key = (cells.text(row.id), _text(row.topic), cells.bigint(row.segment), cells.bigint(row.seq_nr))
    return b"".join((_long(8, row.write_time), *key, cells.timestamp(row.timestamp)))


def segment_tombstone_cells(topic: str, key: str, segment: int, up_to: int | None, write_time: int) -> bytes:
    """A DELETE of a segment of ``journal``, or of its rows up to a sequence number."""
    place = _long(8, write_time) + cells.text(key) + _text(topic) + _long(8, segment)
    return place if up_to is None else place + _long(8, up_to)


def head_cells(topic: str, key: str, head: Head, write_time: int) -> bytes:
    """An INSERT into ``metajournal``, whole: what the head has not is removed.

    Else a late write of an older head, or what such a head left, would show through.
    """
    after = None if head.expire_after is None else duration(head.expire_after)
    return b"".join(
        (
            _text(topic),
            _long(8, head.segment),
            cells.text(key),
            _head_place(4, head.partition, 8, head.offset, 4, head.segment_size, 8, head.seq_nr),
            cells.bigint(head.delete_to, cells.NULL),
            cells.timestamp(head.created),
            cells.date(head.created_date),
            cells.timestamp(head.updated),
            cells.duration(after, cells.NULL),
            cells.date(head.expire_on, cells.NULL),
            cells.uuid(head.record_id, cells.NULL),
            _text(head.origin, cells.NULL),
            _long(8, write_time),
        )
    )


def head_tombstone_cells(topic: str, key: str, segment: int, write_time: int) -> bytes:
    """A DELETE of a row of ``metajournal``."""
    return _long(8, write_time) + _text(topic) + _long(8, segment) + cells.text(key)
