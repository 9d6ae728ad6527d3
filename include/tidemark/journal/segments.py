"""Where rows and heads live: the two ``segment`` columns. Arithmetic only, and part of every primary key."""

DEFAULT_SEGMENT_SIZE = 10_000
SMALLEST_SEGMENT_SIZE = 2

HEAD_SEGMENTS = 10_000
OLD_HEAD_SEGMENTS = 100
"""Heads written before the original went from 100 to 10,000 segments stay where they are."""


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
    """``metajournal.segment`` of an entity; its topic plays no part."""
    return abs(java_hash(key.lower())) % segments


def head_segments(key: str) -> tuple[int, ...]:
    """Where to look for a head, in this order: today's segment, then the old one if it is another."""
    spread = abs(java_hash(key.lower()))
    today, old = spread % HEAD_SEGMENTS, spread % OLD_HEAD_SEGMENTS
    return (today,) if today == old else (today, old)


def row_segment(seq_nr: int, segment_size: int) -> int:
    """``journal.segment`` of an event."""
    return (seq_nr - 1) // segment_size


def stored_segment_size(value: int | None) -> int:
    """A head's ``segment_size`` as it is to be understood: missing or impossible means the default."""
    return value if value is not None and value >= SMALLEST_SEGMENT_SIZE else DEFAULT_SEGMENT_SIZE
