"""The tail of a journal in Kafka: the actions of one entity in a partition, from an offset to a mark.

Records come from the head cache, which reads from Kafka what it does not have. Only the entity's own records
are decoded.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager

from tidemark.client.errors import BadRecord, TailUnreadable
from tidemark.client.tail.chunk import SourceRecord, TailRecord
from tidemark.client.tail.head_cache import (
    CacheBounds,
    CacheInfo,
    HeadCache,
    SourceBegun,
    TailPlace,
    TailSource,
)
from tidemark.client.tail.wanted_key import WantedKey
from tidemark.connections import KafkaConnection
from tidemark.journal.action import Action
from tidemark.journal.codec.record import read_action
from tidemark.journal.errors import Undecodable
from tidemark.kafka.errors import KafkaFailure, OffsetGone
from tidemark.kafka.tail import KafkaTail


class JournalTail:
    """The partitions of one topic."""

    def __init__(self, topic: str, source: TailSource, bounds: CacheBounds, patience: float) -> None:
        self._topic, self._source = topic, source
        self._cache = HeadCache(source, bounds, patience)

    def actions(self, key: str, place: TailPlace, first: int, mark: int) -> Iterator[tuple[int, Action]]:
        """See ``Tail.actions``. The mark itself is read too, so that the end of the range is certain."""
        wanted = WantedKey(key)
        for record in self._records(wanted, place, first, mark):
            found = record.key
            if record.offset >= mark or not wanted.is_key(found):
                continue
            try:
                action = read_action(
                    found, record.value, record.timestamp, record.timestamp_type, record.headers
                )
            except Undecodable as error:
                raise BadRecord(self._topic, key, place.partition, record.offset, error.reason) from None
            if action is not None:
                yield record.offset, action

    def end(self, key: str, partition: int) -> int:
        """See ``Tail.end``."""
        try:
            return self._source.offsets(partition)[1]
        except KafkaFailure as error:
            raise TailUnreadable(self._topic, key, partition, 0, 0, error.reason) from error

    def cache_info(self) -> CacheInfo:
        """See ``Tail.cache_info``."""
        return self._cache.info()

    def _records(self, key: WantedKey, place: TailPlace, first: int, mark: int) -> Iterator[TailRecord]:
        position = first
        try:
            for record in self._cache.records(key, place, first, mark):
                position = record.offset + 1
                yield record
        except OffsetGone:
            raise
        except KafkaFailure as error:
            raise TailUnreadable(
                self._topic, key.text, place.partition, position, mark, error.reason
            ) from error

    def close(self) -> None:
        """Empties the cache and closes idle consumers; those in use close when their read ends."""
        self._cache.clear()
        self._source.close()


class KafkaTailSource:
    """``TailSource`` of one topic in Kafka."""

    def __init__(self, topic: str, connection: KafkaConnection, isolation: str, patience: float) -> None:
        self._topic = topic
        self._kafka = KafkaTail(connection, "tidemark-journal", patience, isolation=isolation)

    def offsets(self, partition: int) -> tuple[int, int]:
        """See ``TailSource.offsets``."""
        return self._kafka.offsets_of(self._topic, partition)

    def records(self, partition: int, first: int, end: int) -> Iterator[SourceRecord]:
        """See ``TailSource.records``."""
        return self._kafka.records(self._topic, partition, first, end)

    def begun(self, partition: int, first: int) -> AbstractContextManager[SourceBegun]:
        """See ``TailSource.begun``."""
        return self._kafka.begun(self._topic, partition, first)

    def close(self) -> None:
        """See ``TailSource.close``."""
        self._kafka.close()
