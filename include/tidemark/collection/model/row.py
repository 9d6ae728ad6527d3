"""A row of a collection: one message, as the cells of its columns, and its canonical bytes.

The canonical bytes are durable: digests are computed from them, and changing them makes every stored digest
wrong. The same holds for the bytes of a key, which decide the shard.
"""

from functools import lru_cache
from struct import Struct
from typing import NamedTuple

_length = Struct(">i").pack
_system = Struct(">qq?i").pack
_position = Struct(">iq").pack
_NULL = b"\xff\xff\xff\xff"


class CollectionRow(NamedTuple):
    """What one message says about one key.

    Attributes:
        key: The serialized CQL value of each key column, without length prefix.
        values: The serialized CQL value of each data column, None for null. All None where
            ``gone``, except where the envelope keeps those of deletes.
        t: The time of the binding that holds the message, in µs.
        message_id: The message's id in the commit log.
        write_time: The write timestamp of the row's cells.
        gone: Whether the message deletes the key.
        topic: The message's topic.
        partition: The message's partition.
        offset: The message's offset.
        shard: The shard of the key.
    """

    key: tuple[bytes, ...]
    values: tuple[bytes | None, ...]
    t: int
    message_id: int
    write_time: int
    gone: bool
    topic: str
    partition: int
    offset: int
    shard: int


def key_bytes(key: tuple[bytes, ...]) -> bytes:
    """A key as bytes, each column with its length: what ``shard_of`` takes."""
    if len(key) == 1:
        return _length(len(key[0])) + key[0]
    return b"".join([_length(len(cell)) + cell for cell in key])


def canonical_bytes(row: CollectionRow) -> bytes:
    """A row as bytes that are equal exactly where the rows are: for digests.

    The write timestamp and the shard are not part of them: the first follows from the message, the second
    from the key and the number of shards, which two renditions may differ in.
    """
    key, values, t, message_id, _, gone, topic, partition, offset, _ = row
    parts = [_length(len(key)), key_bytes(key), _system(t, message_id, gone, len(values))]
    parts += [_NULL if cell is None else _length(len(cell)) + cell for cell in values]
    parts += (_topic(topic), _position(partition, offset))
    return b"".join(parts)


@lru_cache(1024)
def _topic(topic: str) -> bytes:
    data = topic.encode()
    return _length(len(data)) + data
