"""What a client has read of the tails of a topic's partitions, so that the next read of an entity reads only
what was sent since.

A read catches up first: it reads from Kafka what follows the last record that is kept, up to its mark, and
compares that record again. So the result is that of a read without the cache, or the cache begins anew:
after the topic was recreated (another id), after the log was cut (another record at the same offset), and
after Kafka has removed the beginning. What the tables have is dropped. Memory is bounded: the oldest records
of the largest partition are dropped first, and reads of them go to Kafka. There is no thread, and no clock:
moments are numbered.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple, Protocol

from tidemark.client.tail.cached_partition import Anchor, CachedPartition
from tidemark.client.tail.chunk import KeptRecord, MissingRecords, SourceRecord, TailChunk, TailRecord
from tidemark.client.tail.wanted_key import WantedKey
from tidemark.kafka.errors import OffsetGone

CACHE_BYTES = 64 * 2**20
"""The default bound of a journal's cache in bytes."""
CACHE_RECORDS = 1_000_000
"""The default bound in records."""
_AT_ONCE = 256
"""Records that are added while the lock is held."""


@dataclass(frozen=True, slots=True)
class CacheBounds:
    """The most that the cache of one journal keeps, over all partitions. 0 keeps nothing."""

    size: int = CACHE_BYTES
    records: int = CACHE_RECORDS

    @property
    def is_off(self) -> bool:
        """Whether nothing may be kept."""
        return self.size <= 0 or self.records <= 0


class CacheInfo(NamedTuple):
    """The state of a journal's cache, for metrics. Counts begin when the journal is opened."""

    hits: int = 0
    """Reads of a tail that read from Kafka only what was sent since the read before."""
    misses: int = 0
    """Reads of a tail that read older records from Kafka too."""
    records: int = 0
    """Records that are kept now."""
    bytes: int = 0
    """Their memory, about."""
    evicted: int = 0
    """Records that were dropped because of the bounds."""
    discarded: int = 0
    """How often a partition was discarded because Kafka no longer has the same records."""


class TailPlace(NamedTuple):
    """A partition as one read knows it."""

    partition: int
    topic_id: str | None
    """The topic's id, requested after the read's mark; None where this Kafka has no ids."""
    reached: int
    """The offset up to which the tables have everything; −1 where they have nothing."""


class SourceBegun(Protocol):
    """A partition whose records arrive while its offsets are requested."""

    def offsets(self) -> tuple[int, int]:
        """The first and the next offset of the partition."""

    def until(self, end: int) -> Iterator[SourceRecord]:
        """The records up to an offset, exclusive. Raises ``OffsetGone``."""


class TailSource(Protocol):
    """Reads the partitions of one topic."""

    def begun(self, partition: int, first: int) -> AbstractContextManager[SourceBegun]:
        """Begins to read from an offset on, until the end of the block."""

    def offsets(self, partition: int) -> tuple[int, int]:
        """The first and the next offset of a partition."""

    def records(self, partition: int, first: int, end: int) -> Iterator[SourceRecord]:
        """The records from one offset to another, exclusive. Raises ``OffsetGone``."""

    def close(self) -> None:
        """Closes idle consumers; those in use close when their read ends."""


class HeadCache:
    """The cache of one topic. Threads may share it."""

    def __init__(self, source: TailSource, bounds: CacheBounds, patience: float) -> None:
        """``patience``: seconds that a read waits for another read of the same partition."""
        self._source, self._bounds, self._patience = source, bounds, patience
        self._lock = threading.Lock()
        """Protects the partitions' contents and the counts. Never held during a request."""
        self._partitions: dict[int, CachedPartition] = {}
        self._moments = count(1)
        self._hits = self._misses = self._evicted = self._discarded = 0

    def records(self, key: WantedKey, place: TailPlace, first: int, mark: int) -> Iterator[TailRecord]:
        """At least the entity's records from offset ``first`` to ``mark``, exclusive, and maybe others'.

        Marks may be left out. Raises ``OffsetGone`` where Kafka no longer has the first offset.
        """
        if self._bounds.is_off or place.topic_id is None:
            yield from self._source.records(place.partition, first, mark + 1)
            return
        called = next(self._moments)
        held = self._held(place.partition, place.topic_id, mark)
        if not held.turn.acquire(timeout=self._patience):
            self._count(is_hit=False)
            yield from self._source.records(place.partition, first, mark + 1)
            return
        try:
            is_ready = self._is_ready(held, place, first, mark, called)
            start, chunks, latest = self._found(held, key, place, first, mark)
        finally:
            held.turn.release()
        if not is_ready:
            start, chunks, latest = mark + 1, [], []
        if first < start:
            yield from self._source.records(place.partition, first, min(start, mark + 1))
        for chunk in chunks:
            yield from self._completed(place.partition, chunk.read(key, max(first, start), mark))
        yield from self._completed(place.partition, latest)

    def _completed(
        self, partition: int, found: Iterable[KeptRecord | MissingRecords]
    ) -> Iterator[TailRecord]:
        for one in found:
            if isinstance(one, MissingRecords):
                yield from self._source.records(partition, one.first, one.end)
            else:
                yield one

    def info(self) -> CacheInfo:
        """The present state."""
        with self._lock:
            held = self._partitions.values()
            return CacheInfo(
                self._hits,
                self._misses,
                sum(one.records for one in held),
                sum(one.size for one in held),
                self._evicted,
                self._discarded,
            )

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._partitions.clear()

    def _held(self, partition: int, topic_id: str, mark: int) -> CachedPartition:
        with self._lock:
            held = self._partitions.get(partition)
            if held is None or held.topic_id != topic_id:
                self._discarded += held is not None
                held = self._partitions[partition] = CachedPartition(topic_id)
            held.wanted = max(held.wanted, mark)
            return held

    def _count(self, *, is_hit: bool) -> None:
        with self._lock:
            self._hits += is_hit
            self._misses += not is_hit

    def _is_ready(self, held: CachedPartition, place: TailPlace, first: int, mark: int, called: int) -> bool:
        """Extends the partition to the mark. Begins anew where Kafka no longer has the same records.

        Returns False where Kafka's records changed once more meanwhile.
        """
        is_hit = held.anchor is not None and first >= held.start
        if held.anchor is None or first > held.end:
            self._begin(held, first, mark)
        is_ready = held.checked_at > called and mark < held.end
        if not is_ready and not (is_ready := self._catches_up(held, place.partition, mark)):
            is_hit = False
            self._begin(held, first, mark, is_discarded=True)
            is_ready = self._catches_up(held, place.partition, mark)
        self._count(is_hit=is_hit)
        if is_ready and first < held.log_start:
            raise OffsetGone(f"the partition begins at offset {held.log_start}")
        return is_ready

    def _begin(self, held: CachedPartition, first: int, mark: int, *, is_discarded: bool = False) -> None:
        with self._lock:
            held.begin(max(first, mark + 1 - self._bounds.records))
            self._discarded += is_discarded

    def _catches_up(self, held: CachedPartition, partition: int, mark: int) -> bool:
        """Reads what follows, up to the mark. Returns False where Kafka has other records than before."""
        began, anchor = next(self._moments), held.anchor
        first = held.end if anchor is None else anchor.offset
        try:
            with self._source.begun(partition, first) as begun:
                log_start, log_end = begun.offsets()
                if log_end < held.end:
                    return False
                end = self._wanted_end(held, mark, log_end)
                records = begun.until(end)
                if anchor is not None and Anchor.of_first(records) != anchor:
                    return False
                while batch := list(islice(records, _AT_ONCE)):
                    with self._lock:
                        held.extend(batch)
                        self._evict()
        except OffsetGone:
            if anchor is None:
                raise
            return False
        held.checked_at, held.log_start = began, log_start
        return held.end == end

    def _wanted_end(self, held: CachedPartition, mark: int, log_end: int) -> int:
        """The offset to read to: marks of waiting reads are read too, where that does not need to wait."""
        with self._lock:
            end = max(mark, min(max(held.wanted, held.end - 1), log_end - 1)) + 1
            held.wanted = -1
        return end

    def _evict(self) -> None:
        held = self._partitions.values()
        while (
            sum(one.size for one in held) > self._bounds.size
            or sum(one.records for one in held) > self._bounds.records
        ):
            self._evicted += max(held, key=lambda one: one.size).drop_first()

    def _found(
        self, held: CachedPartition, key: WantedKey, place: TailPlace, first: int, mark: int
    ) -> tuple[int, Sequence[TailChunk], Sequence[KeptRecord | MissingRecords]]:
        """The first offset that is kept, chunks that no longer change, and the last one's records."""
        with self._lock:
            held.drop_below(place.reached + 1)
            found = [chunk for chunk in held.chunks if chunk and chunk.last >= first]
            latest = list(found.pop().read(key, max(first, held.start), mark)) if found else []
            return held.start, found, latest
