"""The topic of the operations in Kafka, as a synchronisation reads and writes it.

Corrections go to the partitions that the keys' hashes name, as agents send operations. Reads what is
committed, or everything, as the pipeline does.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self, cast

from tidemark.connections import KafkaConnection
from tidemark.kafka import partitioning
from tidemark.kafka.consumer import OffsetRange, PartitionReader, WhenGone
from tidemark.kafka.errors import KafkaFailure, NotAllAcknowledged
from tidemark.kafka.producer import BatchProducer, RecordToSend
from tidemark.kafka.tail import FETCHED_AHEAD, FETCHED_AT_ONCE
from tidemark.log.fixed_topics import record_topic, recorded_topic
from tidemark.log.model.binding import Available
from tidemark.log.model.fixed_partitions import (
    FixedPartitions,
    FixedTopic,
    find_changes,
    partition_counts,
)
from tidemark.log.source import NoSuchTopic, read_available
from tidemark.log.state.control import LogControl
from tidemark.operations.corrections import CORRECTION_HEADER
from tidemark.operations.operation import encoded, object_key
from tidemark.oplog.sync.errors import (
    OperationsGone,
    OplogTopicChanged,
    OplogTopicMissing,
    SyncUnanswered,
)
from tidemark.oplog.sync.sender import TopicRecord
from tidemark.oplog.sync.sending import Outgoing, Place, refuse_truncated
from tidemark.pipeline.model import Pipeline, source_topics

PATIENCE = 30.0
"""Seconds after which Kafka is said not to answer."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """The topic at one moment. Partitions that were added to it are left out: they stay empty.

    Attributes:
        topic: Its name.
        topic_id: Kafka's id of it.
        partitions: The number by which the partitions of objects are computed.
        firsts: The first offset of every partition.
        ends: The next offset of every partition, as far as records can be read.
    """

    topic: str
    topic_id: str
    partitions: int
    firsts: Mapping[int, int]
    ends: Mapping[int, int]


def read_topic(
    pipeline: Pipeline, connection: KafkaConnection, control: LogControl, *, records: bool = False
) -> TopicState:
    """The topic of a pipeline's operations now; ``records`` fixes its id and its partitions before use.

    Raises ``OplogTopicMissing``, and ``OplogTopicChanged`` where it is not as it was recorded.
    """
    (topic,) = pipeline.source.kafka.topics
    try:
        found = read_available(source_topics(pipeline), connection)
    except NoSuchTopic:
        raise OplogTopicMissing(pipeline.name, topic) from None
    recorded = record_topic(control, found, topic) if records else recorded_topic(control, topic)
    return topic_state(pipeline.name, topic, found, control.bindings_head().partitions, recorded)


def topic_state(
    pipeline: str,
    topic: str,
    found: Available,
    fixed: Mapping[str, FixedPartitions],
    recorded: FixedTopic | None,
) -> TopicState:
    """The topic as Kafka has it, if that is as it was recorded. Raises ``OplogTopicChanged``."""
    topic_id, partitions = found.topic_ids.get(topic, ""), partition_counts(found)[topic]
    if recorded is not None:
        if topic_id != recorded.topic_id:
            problem = "was deleted and made again, and the new one was not accepted yet"
            raise OplogTopicChanged(pipeline, topic, problem)
        for change in find_changes(fixed, found):
            problem = f"has {change.found} partitions instead of {change.computed_by}"
            raise OplogTopicChanged(pipeline, topic, f"{problem}, so objects may have moved")
        partitions = recorded.partitions
    held = {number: found.offsets[topic, number] for number in range(partitions)}
    return TopicState(
        topic,
        topic_id,
        partitions,
        {number: one.earliest for number, one in held.items()},
        {number: one.latest for number, one in held.items()},
    )


def refuse_changed(pipeline: str, now: TopicState, topic_id: str, starts: Mapping[int, int]) -> None:
    """Raise ``OplogTopicChanged`` where the topic is not the one that was compared with up to ``starts``."""
    if now.topic_id != topic_id:
        problem = "was deleted and made again since its operations were compared with the dump"
        raise OplogTopicChanged(pipeline, now.topic, problem)
    if now.partitions != len(starts):
        problem = f"has {now.partitions} partitions instead of {len(starts)}, so objects may have moved"
        raise OplogTopicChanged(pipeline, now.topic, problem)
    refuse_truncated(pipeline, now.topic, now.ends, starts)


def partition_of(type_: str, id_: str, partitions: int) -> int:
    """The partition of an object's operations."""
    return partitioning.partition_of(object_key(type_, id_), partitions)


class KafkaOperations:
    """``OperationTopic`` in Kafka. Connects on first use."""

    def __init__(
        self,
        pipeline: str,
        topic: str,
        partitions: int,
        connection: KafkaConnection,
        isolation: str,
        patience: float = PATIENCE,
    ) -> None:
        self._pipeline, self._topic, self._partitions = pipeline, topic, partitions
        self._reader = PartitionReader(
            connection,
            "tidemark-sync",
            patience,
            isolation=isolation,
            when_gone=WhenGone.REFUSE,
            fetched_ahead=FETCHED_AHEAD,
            fetched_at_once=FETCHED_AT_ONCE,
        )
        self._producer = BatchProducer(connection, patience, compression="lz4")
        self._firsts: Mapping[int, int] = {}
        """The first offset of every partition, when the ends were read last."""

    def ends(self) -> Mapping[int, int]:
        """See ``OperationTopic``."""
        with self._blaming(f"the end of topic {self._topic} could not be read"):
            found = {number: self._reader.offsets(self._topic, number) for number in range(self._partitions)}
        self._firsts = {number: first for number, (first, _) in found.items()}
        return {number: end for number, (_, end) in found.items()}

    def records(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, TopicRecord]]:
        """See ``OperationTopic``. Raises ``OperationsGone``."""
        for number, (first, _) in ranges.items():
            if self._firsts.get(number, first) > first:
                raise OperationsGone(self._pipeline, self._topic, number, first)
        wanted = [OffsetRange(self._topic, number, *one) for number, one in sorted(ranges.items())]
        with self._blaming(f"topic {self._topic} could not be read"):
            for found, record in self._reader.ranges(wanted):
                yield found.partition, cast("TopicRecord", record)

    def send(self, corrections: Sequence[Outgoing]) -> Sequence[Place]:
        """See ``OperationTopic``."""
        try:
            placed = self._producer.send([self._record_of(one) for one in corrections])
        except NotAllAcknowledged as error:
            what = f"{error.acknowledged} of {len(corrections)} corrections were acknowledged"
            raise SyncUnanswered(self._pipeline, what, error.reason) from error
        return [(one.partition, one.offset) for one in placed]

    def close(self) -> None:
        """Disconnect."""
        self._producer.close()
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _record_of(self, one: Outgoing) -> RecordToSend:
        headers = [(CORRECTION_HEADER, one.header.to_header())]
        operation = one.operation
        return RecordToSend(self._topic, operation.key, encoded(operation), headers, partition=one.partition)

    @contextmanager
    def _blaming(self, what: str) -> Iterator[None]:
        try:
            yield
        except KafkaFailure as error:
            raise SyncUnanswered(self._pipeline, what, error.reason) from error
