"""Kafka's side of expiry: the tail of a topic for the last look, and purges to the partitions of their heads.

The tail is read with transactions that are still open, because what may be an append is one. Joins no group
and commits nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tidemark.client.producer import sent_version
from tidemark.clock import wall_clock_millis
from tidemark.connections import KafkaConnection
from tidemark.expiry.errors import KafkaFailed
from tidemark.expiry.last_look import ActionRecord
from tidemark.expiry.run_record import Intended
from tidemark.journal.action import Purge
from tidemark.journal.codec.record import write_action
from tidemark.kafka.consumer import READ_UNCOMMITTED
from tidemark.kafka.errors import KafkaFailure, NotAllAcknowledged
from tidemark.kafka.producer import RecordToSend, send_all
from tidemark.kafka.tail import KafkaTail
from tidemark.log.model.binding import Offsets

PATIENCE = 30.0
"""Seconds after which Kafka is said not to answer."""


class PipelineTail:
    """The topics of one pipeline, from where its log ends."""

    def __init__(self, pipeline: str, connection: KafkaConnection, patience: float = PATIENCE) -> None:
        self._pipeline = pipeline
        self._kafka = KafkaTail(
            connection, "tidemark-expiry", patience, isolation=READ_UNCOMMITTED, most_idle=0
        )

    def offsets(self, topic: str) -> Mapping[int, Offsets] | None:
        """See ``TopicTail.offsets``."""
        with self._blaming(f"topic {topic} could not be looked at"):
            found = self._kafka.offsets(topic)
        return None if found is None else {number: Offsets(*held) for number, held in found.items()}

    def records(self, topic: str, partition: int, first: int, end: int) -> Iterator[ActionRecord]:
        """See ``TopicTail.records``."""
        with self._blaming(f"{topic}/{partition} could not be read from offset {first}"):
            for one in self._kafka.records(topic, partition, first, end):
                sent = (one.key, one.value, one.timestamp, one.timestamp_type, one.headers)
                yield ActionRecord(partition, one.offset, *sent)

    @contextmanager
    def _blaming(self, what: str) -> Iterator[None]:
        try:
            yield
        except KafkaFailure as error:
            raise KafkaFailed(self._pipeline, what, error.reason) from error


class PurgeSender:
    """Sends the purges of one run; nothing counts before all replicas have it."""

    def __init__(
        self, pipeline: str, run: str, connection: KafkaConnection, patience: float = PATIENCE
    ) -> None:
        self._pipeline, self._run, self._patience = pipeline, run, patience
        self._connection = connection

    def send(self, purges: Sequence[Intended]) -> list[int]:
        """See ``Sender.send``."""
        if not purges:
            return []
        now = wall_clock_millis()
        try:
            placed = send_all(self._connection, [self._record_of(one, now) for one in purges], self._patience)
        except NotAllAcknowledged as error:
            count = f"{error.acknowledged} of {len(purges)}"
            what = f"{count} purges were acknowledged, the others may be there or not"
            raise KafkaFailed(self._pipeline, what, error.reason) from error
        return [one.offset for one in placed]

    def _record_of(self, one: Intended, now: int) -> RecordToSend:
        record = write_action(Purge(one.key, now, self._run, sent_version()))
        sent = (record.key, record.value, record.headers, record.timestamp)
        return RecordToSend(one.topic, *sent, partition=one.partition)
