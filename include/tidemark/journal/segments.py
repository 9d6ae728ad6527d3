"""The ``segment`` columns of ``journal`` and ``metajournal``, which are part of their primary keys.

Arithmetic only.
"""

DEFAULT_SEGMENT_SIZE = 10_000
SMALLEST_SEGMENT_SIZE = 2

HEAD_SEGMENTS = 10_000
OLD_HEAD_SEGMENTS = 100
"""The old segment space: heads written before kafka-journal went from 100 to 10,000 segments stay in it."""


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``: 32 bits, signed, over UTF-16 code units."""
    value = 0
    if text.isascii():
        for code in text.encode():
            value = (31 * value + code) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for index in range(0, len(units), 2):
            value = (31 * value + (units[index] << 8) + units[index + 1]) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def head_segment(key: str, segments: int = HEAD_SEGMENTS) -> int:
    """``metajournal.segment`` of an entity. It depends on the key alone, not on the topic."""
    return abs(java_hash(key.lower())) % segments


def head_segments(key: str) -> tuple[int, ...]:
    """The segments that can hold an entity's head: that of the current space first, then of the old one."""
    key_hash = abs(java_hash(key.lower()))
    current, old = key_hash % HEAD_SEGMENTS, key_hash % OLD_HEAD_SEGMENTS
    return (current,) if current == old else (current, old)


def row_segment(seq_nr: int, segment_size: int) -> int:
    """``journal.segment`` of an event."""
    return (seq_nr - 1) // segment_size


def stored_segment_size(value: int | None) -> int:
    """A head's effective ``segment_size``: the default where the column is null or too small."""
    return value if value is not None and value >= SMALLEST_SEGMENT_SIZE else DEFAULT_SEGMENT_SIZE
