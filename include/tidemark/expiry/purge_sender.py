"""Kafka's side of expiry: the tail of a topic for the last look, and purges to the partitions of their heads.

The tail is read with transactions that are still open, because what may be an append is one. Joins no group
and commits nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tidemark.client.producer import sent_version
from tidemark.clock import wall_clock_millis
from tidemark.connections import KafkaConnection
from tidemark.expiry.errors import KafkaFailed
from tidemark.expiry.last_look import Headers, PurgeableRecord
from tidemark.expiry.run_record import Intended
from tidemark.journal.action import Purge
from tidemark.journal.codec.record import write_action
from tidemark.log.model.binding import Offsets
from tidemark.writers.kafka.target import Complaints

PATIENCE = 30.0
"""Seconds after which Kafka is said not to answer."""
MESSAGES_AT_ONCE = 500


class KafkaTail:
    """The topics of one pipeline, from where its log ends."""

    def __init__(self, pipeline: str, connection: KafkaConnection, patience: float = PATIENCE) -> None:
        self._pipeline, self._connection, self._patience = pipeline, connection, patience

    def offsets(self, topic: str) -> Mapping[int, Offsets] | None:
        """See ``Tail.offsets``."""
        with self._consumer(f"topic {topic} could not be looked at") as consumer:
            # All topics, because asking for one may create it.
            known = consumer.list_topics(timeout=self._patience).topics
            if topic not in known:
                return None
            found = {}
            for partition in known[topic].partitions:
                place = TopicPartition(topic, partition)
                held = consumer.get_watermark_offsets(place, timeout=self._patience)
                if held is None:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no offsets within the time"))
                found[partition] = Offsets(*held)
            return found

    def records(self, topic: str, partition: int, first: int, end: int) -> Iterator[PurgeableRecord]:
        """See ``Tail.records``."""
        if first >= end:
            return
        with self._consumer(f"{topic}/{partition} could not be read from offset {first}") as consumer:
            consumer.assign([TopicPartition(topic, partition, first)])
            while True:
                waited = consumer.poll(self._patience)
                if waited is None:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no messages within the time"))
                for message in (waited, *consumer.consume(MESSAGES_AT_ONCE, 0)):
                    error = message.error()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    # The end of a partition has an offset too, and what is left may be markers only.
                    offset = message.offset() or 0
                    if error is not None or offset >= end:
                        if offset >= end:
                            return
                        continue
                    yield _record(message, partition, offset)
                    if offset == end - 1:
                        return

    @contextmanager
    def _consumer(self, what: str) -> Iterator[Consumer]:
        complaints = Complaints()
        consumer = Consumer(
            {
                **self._connection.librdkafka_options(),
                "group.id": "tidemark-expiry",  # has to be given; is never joined
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",
                "allow.auto.create.topics": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 5,  # somebody waits: what is there is to come at once
                "error_cb": complaints.note,
                "log_level": 0,  # what is worth knowing is in the errors that are raised
            }
        )
        try:
            yield consumer
        except KafkaException as error:
            raise KafkaFailed(self._pipeline, what, complaints.about(error)) from error
        finally:
            consumer.close()


class PurgeSender:
    """The producer of one run: idempotent, and nothing counts before all replicas have it."""

    def __init__(
        self, pipeline: str, run: str, connection: KafkaConnection, patience: float = PATIENCE
    ) -> None:
        self._pipeline, self._run, self._patience = pipeline, run, patience
        self._connection, self._complaints = connection, Complaints()

    def send(self, purges: Sequence[Intended]) -> list[int]:
        """See ``Sender.send``."""
        if not purges:
            return []
        producer = Producer(
            {
                **self._connection.librdkafka_options(),
                "acks": "all",
                "enable.idempotence": True,
                "delivery.timeout.ms": int(self._patience * 1000),
                "error_cb": self._complaints.note,
                "log_level": 0,  # what is worth knowing is in the errors that are raised
            }
        )
        offsets: dict[int, int] = {}
        failed: list[KafkaError] = []

        def note(place: int, error: KafkaError | None, message: Message) -> None:
            if error is None:
                offsets[place] = message.offset() or 0
            else:
                failed.append(error)

        now = wall_clock_millis()
        try:
            for place, one in enumerate(purges):
                record = write_action(Purge(one.key, now, self._run, sent_version()))
                producer.produce(
                    one.topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp=record.timestamp,
                    partition=one.partition,
                    on_delivery=partial(note, place),
                )
                producer.poll(0)
            producer.flush(self._patience + 1)
        except (KafkaException, BufferError) as error:
            found = error.args[0] if isinstance(error, KafkaException) else KafkaError(KafkaError._QUEUE_FULL)
            raise self._failed(len(offsets), len(purges), found) from error
        if len(offsets) < len(purges):
            late = KafkaError(KafkaError._TIMED_OUT, "not acknowledged in time")
            raise self._failed(len(offsets), len(purges), failed[0] if failed else late)
        return [offsets[place] for place in range(len(purges))]

    def _failed(self, sent: int, wanted: int, error: KafkaError) -> KafkaFailed:
        what = f"{sent} of {wanted} purges were acknowledged, the others may be there or not"
        return KafkaFailed(self._pipeline, what, self._complaints.about(KafkaException(error)))


def _record(message: Message, partition: int, offset: int) -> PurgeableRecord:
    kind, timestamp = message.timestamp()
    sent_at = None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp
    headers = cast("Headers", message.headers() or ())
    key, value = message.key(), message.value()
    return PurgeableRecord(partition, offset, _bytes(key), _bytes(value), sent_at, kind, headers)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
