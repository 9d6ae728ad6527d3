"""Producers. A record counts as sent when all in-sync replicas have acknowledged it.

``TransactionalProducer`` sends batches of which a reader sees all or nothing, and fences earlier producers
with its id. ``SharedProducer`` sends one record at a time for many threads. ``PolledProducer`` sends many
records for one event loop. ``BatchProducer`` sends batches, ``send_all`` a single one. None of them creates a
topic, and none retries a record that it has reported as failed.
"""

import threading
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tidemark.connections import KafkaConnection
from tidemark.kafka.consumer import RecordHeaders
from tidemark.kafka.errors import KafkaFailure, NotAllAcknowledged, UnknownTopic
from tidemark.kafka.librdkafka import Complaints, client_options, failure_of, timed_out, translating

MOST_UNDER_WAY = 50_000
"""Maximum of unacknowledged records in ``send_all``; the client's queue holds twice as many."""
_SERVED_WITHIN = 0.5
"""Interval in seconds at which the thread that serves acknowledgements checks whether to stop."""
_JAVAS = {"partitioner": "murmur2_random"}
"""Assigns keys to partitions as Java's clients do."""

Item = TypeVar("Item")


class Placed(NamedTuple):
    """The partition and offset of a record that was sent."""

    partition: int
    offset: int


class RecordToSend(NamedTuple):
    """A record for a topic."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders = ()
    timestamp: int | None = None
    """In milliseconds; None for the time of sending."""
    partition: int | None = None
    """None: computed from the key."""


def _options(connection: KafkaConnection, complaints: Complaints) -> dict[str, Any]:
    return {
        **client_options(connection, complaints),
        "acks": "all",
        "enable.idempotence": True,
        "message.max.bytes": 1_000_000_000,  # the topic's own limit decides
        "allow.auto.create.topics": False,
    }


def _produce(producer: Producer, record: RecordToSend, **further: Any) -> None:
    if record.partition is not None:
        further["partition"] = record.partition
    if record.timestamp is not None:
        further["timestamp"] = record.timestamp or 1  # 0 would mean the time of sending
    headers: list[tuple[str, str | bytes | None]] = list(record.headers)
    producer.produce(record.topic, value=record.value, key=record.key, headers=headers, **further)


class TransactionalProducer:
    """The producer of one transactional id. After a failure it has to be closed."""

    def __init__(self, connection: KafkaConnection, transactional_id: str, patience: float) -> None:
        """``patience`` is the timeout of opening, and of each commit, in seconds."""
        self._patience, self._complaints = patience, Complaints()
        self._is_closed = False
        options = _options(connection, self._complaints) | {"transactional.id": transactional_id}
        with translating(self._complaints):
            self._producer = Producer(options)

    def open(self) -> None:
        """Fence earlier producers with this id, and end the transaction they left open.

        Afterwards the topic's content is final, also after a commit whose answer was lost.
        """
        with translating(self._complaints, self._producer.poll):
            self._producer.init_transactions(self._patience)

    def commit(self, records: Iterable[RecordToSend]) -> None:
        """Send the records in one transaction. Raises ``ProducerFenced`` if a newer producer has the id."""
        self.begin(records)
        with translating(self._complaints, self._producer.poll):
            self._producer.commit_transaction(self._patience)

    def begin(self, records: Iterable[RecordToSend]) -> None:
        """Begin a transaction and queue its records in the client."""
        with translating(self._complaints, self._producer.poll):
            self._producer.begin_transaction()
            for record in records:
                _produce(self._producer, record)

    def close(self) -> None:
        """Disconnect. Records that were not committed never become visible."""
        if not self._is_closed:
            self._is_closed = True
            _close(self._producer)


def _close(producer: Producer) -> None:
    producer.purge()  # otherwise closing waits until the last record has timed out
    with suppress(KafkaException), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that a failed producer cannot abort
        producer.close()


def send_all(
    connection: KafkaConnection,
    records: Iterable[RecordToSend],
    patience: float,
    *,
    as_java: bool = False,
    compression: str = "none",
) -> list[Placed]:
    """Send records in order and wait for them: one batch of a ``BatchProducer``."""
    producer = BatchProducer(connection, patience, as_java=as_java, compression=compression)
    try:
        return producer.send(records)
    finally:
        producer.close()


class BatchProducer:
    """Sends batches of records, each of which is waited for. After a failure it has to be closed."""

    def __init__(
        self,
        connection: KafkaConnection,
        patience: float,
        *,
        as_java: bool = False,
        compression: str = "none",
    ) -> None:
        """``patience`` is the timeout of one record in seconds. ``as_java`` assigns keys to partitions as
        Java's clients do; otherwise as librdkafka does."""
        self._patience, self._complaints = patience, Complaints()
        options = _options(connection, self._complaints) | {
            "delivery.timeout.ms": round(patience * 1000),
            "compression.type": compression,
        }
        self._producer = Producer(options | (_JAVAS if as_java else {}))

    def send(self, records: Iterable[RecordToSend]) -> list[Placed]:
        """Send records in order. Returns the partition and offset of each record, in order.

        Raises ``NotAllAcknowledged``; records without an acknowledgement may be in the topic or not.
        """
        placed, failed, count = dict[int, Placed](), list[KafkaError](), 0
        try:
            for count, record in enumerate(records, 1):
                _produce(self._producer, record, on_delivery=_noting(placed, failed, count))
                self._producer.poll(0)
                if failed:
                    break  # nothing more is sent after a failure
                if count - len(placed) >= MOST_UNDER_WAY:
                    self._producer.flush(self._patience + 1)
            self._producer.flush(self._patience + 1)
            if failed:
                raise KafkaException(failed[0])
            if len(placed) < count:
                raise timed_out("not acknowledged in time")
        except (KafkaException, BufferError) as error:
            raise _not_all(failure_of(error, self._complaints), len(placed)) from error
        return [placed[number] for number in range(1, count + 1)]

    def close(self) -> None:
        """Disconnect. Records without an acknowledgement are given up."""
        _close(self._producer)


def _noting(
    placed: dict[int, Placed], failed: list[KafkaError], number: int
) -> Callable[[KafkaError | None, Message], None]:
    def note(error: KafkaError | None, message: Message) -> None:
        if error is None:
            placed[number] = Placed(message.partition() or 0, message.offset() or 0)
        else:
            failed.append(error)

    return note


def _not_all(failure: KafkaFailure, acknowledged: int) -> NotAllAcknowledged:
    found = NotAllAcknowledged(failure.reason, failure.said)
    found.acknowledged = acknowledged
    return found


class SharedProducer:
    """A producer for single records, started by the first one. Thread-safe."""

    def __init__(self, connection: KafkaConnection, patience: float, thread: str) -> None:
        """``patience``: the timeout of a record in seconds. ``thread``: the name of the serving thread."""
        self._connection, self._patience, self._thread = connection, patience, thread
        self._complaints = Complaints()
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._is_closed = threading.Event()

    @property
    def is_closed(self) -> bool:
        """Whether the producer was closed."""
        return self._is_closed.is_set()

    def start(self, topic: str) -> None:
        """Connect, unless already connected. Raises ``UnknownTopic`` where the topic does not exist."""
        self._running(topic)

    def _running(self, topic: str) -> Producer:
        with self._lock:
            if self._producer is None:
                self._producer = self._started(topic)
            return self._producer

    def send(self, record: RecordToSend) -> Placed:
        """Send a record and wait for its acknowledgement.

        After a ``KafkaFailure`` the record may be in the topic, unless the failure ``is_refused``.
        """
        producer, acknowledged = self._running(record.topic), Future[Placed]()

        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged.set_result(Placed(message.partition() or 0, message.offset() or 0))
            else:
                acknowledged.set_exception(KafkaException(error))

        try:
            _produce(producer, record, on_delivery=note)
            return acknowledged.result()
        except (KafkaException, BufferError) as error:
            failure = failure_of(error, self._complaints)
            if failure.is_fatal:
                with self._lock:
                    if self._producer is producer:
                        self._producer = None
            raise failure from error

    def _started(self, topic: str) -> Producer:
        options = _options(self._connection, self._complaints) | {
            "compression.type": "lz4",
            "linger.ms": 0,  # the caller waits for each record
            "delivery.timeout.ms": int(self._patience * 1000),
        }
        producer = Producer(options | _JAVAS)
        with translating(self._complaints):
            # All topics, because a metadata request for one topic may create it.
            known = producer.list_topics(timeout=self._patience).topics
        if topic not in known:
            raise UnknownTopic(f"there is no topic {topic}")
        threading.Thread(target=self._serve, args=(producer,), name=self._thread, daemon=True).start()
        return producer

    def _serve(self, producer: Producer) -> None:
        while not self._is_closed.is_set():
            producer.poll(_SERVED_WITHIN)

    def close(self) -> None:
        """Wait for unacknowledged records, then disconnect."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush(self._patience)
        self._is_closed.set()


class PolledProducer(Generic[Item]):
    """A producer without a thread of its own, for an event loop that polls. Not thread-safe; never blocks.

    It retries for ever, so that records survive a broker that is away. Records of one partition arrive in the
    order in which they were sent. The caller bounds what is under way.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        topic: str,
        done: Callable[[Item, KafkaFailure | None], object],
        *,
        most: int,
        linger_ms: int = 5,
    ) -> None:
        """``done`` is called by ``poll`` with the item of each record that was acknowledged or has failed.
        ``most`` is the maximum of unacknowledged records."""
        self._topic, self._done, self._complaints = topic, done, Complaints()
        options = _options(connection, self._complaints) | {
            "compression.type": "lz4",
            "linger.ms": linger_ms,
            "delivery.timeout.ms": 0,
            "queue.buffering.max.messages": most,
            "queue.buffering.max.kbytes": 2_000_000,
        }
        with translating(self._complaints):
            self._producer = Producer(options)

    def send(self, partition: int, key: bytes, value: bytes, item: Item) -> bool:
        """Queue a record in the client; returns False where its queue is full.

        Raises ``KafkaFailure`` where the record cannot be queued. After one that ``is_fatal``, the producer
        can only be abandoned.
        """
        try:
            self._producer.produce(
                self._topic, value=value, key=key, partition=partition, on_delivery=partial(self._note, item)
            )
        except BufferError:
            return False
        except KafkaException as error:
            raise failure_of(error, self._complaints) from error
        return True

    def _note(self, item: Item, error: KafkaError | None, message: Message) -> None:
        self._done(item, None if error is None else failure_of(KafkaException(error), self._complaints))

    def poll(self) -> None:
        """Report what has been acknowledged or has failed since, without waiting."""
        self._producer.poll(0)

    def abandon(self) -> None:
        """Report every record under way as failed, and disconnect. Such records may be in the topic."""
        self._producer.purge()
        self._producer.flush(_SERVED_WITHIN)
        _close(self._producer)
