"""Sending records. Nothing counts before all replicas in sync have acknowledged it.

``TransactionalProducer`` sends batches of which a reader sees all or nothing, and takes over from an earlier
producer with its id. ``SharedProducer`` sends one record at a time for many threads. ``send_all`` sends a few
records together. None of them creates a topic, and none sends a record again that it has reported as failed.
"""

import threading
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tidemark.connections import KafkaConnection
from tidemark.kafka.consumer import RecordHeaders
from tidemark.kafka.errors import KafkaFailure, NotAllAcknowledged, UnknownTopic
from tidemark.kafka.librdkafka import Complaints, client_options, failure_of, timed_out, translating

MOST_UNDER_WAY = 50_000
"""Records that ``send_all`` has in its client's queue at most; the queue holds twice as many."""
_SERVED_WITHIN = 0.5
"""Seconds after which the thread that hands out acknowledgements looks whether it is still wanted."""
_JAVAS = {"partitioner": "murmur2_random"}
"""Keys go to the partitions that Java's clients choose."""


class Placed(NamedTuple):
    """Where Kafka has put a record."""

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
    """None: the producer computes it from the key."""


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
        further["timestamp"] = record.timestamp or 1  # the client takes 0 for the time of sending
    headers: list[tuple[str, str | bytes | None]] = list(record.headers)
    producer.produce(record.topic, value=record.value, key=record.key, headers=headers, **further)


class TransactionalProducer:
    """The producer of one transactional id. After a failure it is of no use, and has to be closed."""

    def __init__(self, connection: KafkaConnection, transactional_id: str, patience: float) -> None:
        """``patience`` is how many seconds opening and committing may take, each."""
        self._patience, self._complaints = patience, Complaints()
        self._is_closed = False
        options = _options(connection, self._complaints) | {"transactional.id": transactional_id}
        with translating(self._complaints):
            self._producer = Producer(options)

    def open(self) -> None:
        """Fence earlier producers with this id, and end what they left open.

        What is found in the topic afterwards is the truth, also after a commit whose answer was lost.
        """
        with translating(self._complaints, self._producer.poll):
            self._producer.init_transactions(self._patience)

    def commit(self, records: Iterable[RecordToSend]) -> None:
        """Send the records in one transaction; ``ProducerFenced`` when another producer has taken over."""
        self.begin(records)
        with translating(self._complaints, self._producer.poll):
            self._producer.commit_transaction(self._patience)

    def begin(self, records: Iterable[RecordToSend]) -> None:
        """Begin a transaction and hand its records to the client."""
        with translating(self._complaints, self._producer.poll):
            self._producer.begin_transaction()
            for record in records:
                _produce(self._producer, record)

    def close(self) -> None:
        """Disconnect; what was not committed never becomes visible."""
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
    """Send records in order and wait for them.

    ``patience`` is how many seconds one record may take. ``as_java`` puts keys into the partitions that
    Java's clients choose; otherwise it is librdkafka's choice. The result says where each record is.
    Raises ``NotAllAcknowledged``; those that were not acknowledged may be there or not.
    """
    complaints, placed, failed = Complaints(), dict[int, Placed](), list[KafkaError]()
    options = _options(connection, complaints) | {
        "delivery.timeout.ms": round(patience * 1000),
        "compression.type": compression,
    }
    producer, count = Producer(options | (_JAVAS if as_java else {})), 0
    try:
        for count, record in enumerate(records, 1):
            _produce(producer, record, on_delivery=_noting(placed, failed, count))
            producer.poll(0)
            if count - len(placed) >= MOST_UNDER_WAY:
                producer.flush(patience + 1)
        producer.flush(patience + 1)
        if failed:
            raise KafkaException(failed[0])
        if len(placed) < count:
            raise timed_out("not acknowledged in time")
    except (KafkaException, BufferError) as error:
        raise _not_all(failure_of(error, complaints), len(placed)) from error
    finally:
        _close(producer)
    return [placed[number] for number in range(1, count + 1)]


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
    """A producer for single records: started by the first one, shared by all threads."""

    def __init__(self, connection: KafkaConnection, patience: float, thread: str) -> None:
        """``patience`` is how many seconds a record may take; ``thread`` names the one that serves it."""
        self._connection, self._patience, self._thread = connection, patience, thread
        self._complaints = Complaints()
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._is_closed = threading.Event()

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._is_closed.is_set()

    def start(self, topic: str) -> None:
        """Connect, unless that was done before; ``UnknownTopic`` where there is no such topic."""
        self._running(topic)

    def _running(self, topic: str) -> Producer:
        with self._lock:
            if self._producer is None:
                self._producer = self._started(topic)
            return self._producer

    def send(self, record: RecordToSend) -> Placed:
        """Send a record and wait for it; unless a failure ``is_refused``, the record may be there."""
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
            "linger.ms": 0,  # the caller waits for every single one
            "delivery.timeout.ms": int(self._patience * 1000),
        }
        producer = Producer(options | _JAVAS)
        with translating(self._complaints):
            # All topics, because asking for one may create it.
            known = producer.list_topics(timeout=self._patience).topics
        if topic not in known:
            raise UnknownTopic(f"there is no topic {topic}")
        threading.Thread(target=self._serve, args=(producer,), name=self._thread, daemon=True).start()
        return producer

    def _serve(self, producer: Producer) -> None:
        while not self._is_closed.is_set():
            producer.poll(_SERVED_WITHIN)

    def close(self) -> None:
        """Stop; what is under way is waited for."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush(self._patience)
        self._is_closed.set()
