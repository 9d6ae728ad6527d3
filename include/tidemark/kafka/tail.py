"""Reads the tails of Kafka's partitions for many threads, with a pool of idle readers.

An idle reader fetches nothing, and serves any partition next. Prefetching is bounded, so a long tail needs
little memory.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tidemark.connections import KafkaConnection
from tidemark.kafka.consumer import PartitionReader, ReadRecord, WhenGone
from tidemark.kafka.errors import OffsetGone, UnknownTopic

FETCHED_AHEAD = 1_024
"""Kilobytes that a reader prefetches; more is not faster."""
FETCHED_AT_ONCE = 262_144
"""Bytes of one fetch, compressed."""
MOST_IDLE = 8
"""Maximum of idle readers."""


class TailBegun:
    """A partition whose records arrive while its offsets are requested."""

    def __init__(self, reader: PartitionReader, topic: str, partition: int) -> None:
        self._reader, self._place = reader, (topic, partition)

    def offsets(self) -> tuple[int, int]:
        """The first and the next offset of the partition."""
        return self._reader.offsets(*self._place)

    def until(self, end: int) -> Iterator[ReadRecord]:
        """The records up to ``end``, not included, or ``OffsetGone``."""
        return self._reader.until(end)


class KafkaTail:
    """Tails of one cluster's partitions. Thread-safe: every read has its own reader."""

    def __init__(
        self,
        connection: KafkaConnection,
        group: str,
        patience: float,
        *,
        isolation: str,
        most_idle: int = MOST_IDLE,
    ) -> None:
        """See ``PartitionReader`` for the parameters; ``most_idle=0`` keeps no reader."""
        self._connection, self._group, self._patience = connection, group, patience
        self._isolation, self._most_idle = isolation, most_idle
        self._lock = threading.Lock()
        self._idle: list[tuple[tuple[str, int], PartitionReader]] = []
        """Readers, each with the partition that it has read last. The last one was used last."""
        self._is_closed = False

    def offsets(self, topic: str) -> dict[int, tuple[int, int]] | None:
        """First and next offset of every partition of a topic; None where the topic does not exist."""
        with self._reader(topic, 0) as reader:
            try:
                return {number: reader.offsets(topic, number) for number in reader.partitions(topic)}
            except UnknownTopic:
                return None

    def offsets_of(self, topic: str, partition: int) -> tuple[int, int]:
        """The first and the next offset of one partition."""
        with self._reader(topic, partition) as reader:
            return reader.offsets(topic, partition)

    def records(self, topic: str, partition: int, first: int, end: int) -> Iterator[ReadRecord]:
        """The records from offset ``first`` up to ``end``, not included, or ``OffsetGone``."""
        if first < end:
            with self._reader(topic, partition) as reader:
                yield from reader.records(topic, partition, first, end)

    @contextmanager
    def begun(self, topic: str, partition: int, first: int) -> Iterator["TailBegun"]:
        """A partition that is being fetched from an offset on, until the end of the block."""
        with self._reader(topic, partition) as reader:
            reader.begin(topic, partition, first)
            yield TailBegun(reader, topic, partition)

    @contextmanager
    def _reader(self, topic: str, partition: int) -> Iterator[PartitionReader]:
        """A reader until the end of the block. Concurrent reads of a partition get one each."""
        reader = self._taken((topic, partition)) or self._new_reader()
        try:
            yield reader
        except (GeneratorExit, OffsetGone):
            self._put_back(topic, partition, reader)
            raise
        except BaseException:
            reader.close()
            raise
        self._put_back(topic, partition, reader)

    def _taken(self, place: tuple[str, int]) -> PartitionReader | None:
        """An idle reader: of this partition, or else the one that has been idle longest."""
        with self._lock:
            if not self._idle:
                return None
            same = (number for number, (read, _) in enumerate(self._idle) if read == place)
            return self._idle.pop(next(same, 0))[1]

    def _put_back(self, topic: str, partition: int, reader: PartitionReader) -> None:
        reader.rest()
        with self._lock:
            if not self._is_closed and len(self._idle) < self._most_idle:
                self._idle.append(((topic, partition), reader))
                return
        reader.close()

    def _new_reader(self) -> PartitionReader:
        return PartitionReader(
            self._connection,
            self._group,
            self._patience,
            isolation=self._isolation,
            when_gone=WhenGone.REFUSE,
            fetched_ahead=FETCHED_AHEAD,
            fetched_at_once=FETCHED_AT_ONCE,
        )

    def close(self) -> None:
        """Close the idle readers; busy ones are closed at the end of their read."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for _, reader in idle:
            reader.close()
