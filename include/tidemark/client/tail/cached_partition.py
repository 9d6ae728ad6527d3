"""What the head cache keeps of one partition: every record from ``start`` to ``end``, in chunks.

Only the cache's lock protects it. ``turn`` serialises the reads from Kafka that extend it. Reads nothing.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidemark.client.tail.chunk import SourceRecord, TailChunk


class Anchor(NamedTuple):
    """The last record that was read, recognised by what differs in another record at its offset.

    Kafka never gives one leader epoch to two leaders. So two logs that have a record of the same offset and
    epoch are equal up to it, and one comparison shows that a log was not cut and written anew.
    """

    offset: int
    leader_epoch: int | None
    timestamp: int | None
    key: bytes | None

    @classmethod
    def of(cls, record: SourceRecord) -> "Anchor":
        """The anchor that a record makes."""
        return cls(record.offset, record.leader_epoch, record.timestamp, record.key)

    @classmethod
    def of_first(cls, records: Iterator[SourceRecord]) -> "Anchor | None":
        """The anchor that the next record makes; None where there is none."""
        record = next(records, None)
        return None if record is None else cls.of(record)


class CachedPartition:
    """A partition of one topic, of which everything from ``start`` to ``end``, exclusive, is kept."""

    def __init__(self, topic_id: str) -> None:
        self.topic_id = topic_id
        self.turn = threading.Lock()
        self.wanted = -1
        """The highest mark of the reads that wait for their turn."""
        self.chunks: deque[TailChunk] = deque()
        self.size = self.records = 0
        """Bytes of memory, about; and the number of records that are kept."""
        self.start = self.end = 0
        self.anchor: Anchor | None = None
        """The record at ``end`` - 1; None where nothing was read yet."""
        self.checked_at = 0
        """The moment before the last comparison with Kafka; 0 for none."""
        self.log_start = 0
        """Kafka's first offset at that moment."""

    def begin(self, first: int) -> None:
        """Forgets everything, and begins at an offset."""
        self.chunks.clear()
        self.size = self.records = 0
        self.start = self.end = first
        self.anchor, self.checked_at = None, 0

    def extend(self, records: Iterable[SourceRecord]) -> None:
        """Keeps the records that follow ``end``, in their order."""
        last = None
        chunk = self._open_chunk()
        size, length = chunk.size, len(chunk)
        for last in records:
            if chunk.is_full:
                self.size += chunk.size - size
                self.records += len(chunk) - length
                chunk = self._open_chunk()
                size = length = 0
            chunk.add(last)
        self.size += chunk.size - size
        self.records += len(chunk) - length
        if last is not None:
            self.anchor, self.end = Anchor.of(last), last.offset + 1

    def _open_chunk(self) -> TailChunk:
        if not self.chunks or self.chunks[-1].is_full:
            if self.chunks:
                self.chunks[-1].seal()
            self.chunks.append(TailChunk())
        return self.chunks[-1]

    def drop_below(self, offset: int) -> None:
        """Drops the chunks of which no record is at the offset or beyond."""
        while self.chunks and (not self.chunks[0] or self.chunks[0].last < offset):
            self.drop_first()
        if not self.chunks:
            self.start = max(self.start, min(offset, self.end))

    def drop_first(self) -> int:
        """Drops the oldest chunk. Returns the number of its records."""
        chunk = self.chunks.popleft()
        self.size -= chunk.size
        self.records -= len(chunk)
        if chunk:
            self.start = chunk.last + 1
        return len(chunk)
