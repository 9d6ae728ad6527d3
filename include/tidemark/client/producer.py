"""Actions into a journal's topic, each acknowledged before anything else is said about it.

The producer is idempotent and waits for all replicas; keys go to partitions as Java's clients send them. What
was not acknowledged may be there all the same, and is never sent a second time from here.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tidemark.client.errors import NoJournalTopic, NotSent
from tidemark.client.reader import Placed
from tidemark.connections import KafkaConnection
from tidemark.journal.action import Action
from tidemark.journal.codec.record import write_action
from tidemark.writers.kafka.target import Complaints

_CERTAIN = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._QUEUE_FULL,
    }
)
"""What a broker, or the client before it, says of a record that is certainly not there."""
_SERVED_WITHIN = 0.5
"""Seconds after which the thread that hands out acknowledgements looks whether it is still wanted."""


@cache
def sent_version() -> str:
    """As kafka-journal's clients send theirs, with whose it is."""
    try:
        return f"tidemark-{version('tidemark')}"
    except PackageNotFoundError:
        return "unknown"


class Sender:
    """One topic's producer: started by the first action, shared by all threads."""

    def __init__(self, topic: str, connection: KafkaConnection, patience: float) -> None:
        self._topic, self._connection, self._patience = topic, connection, patience
        self._complaints = Complaints()
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._is_closed = threading.Event()

    def send(self, action: Action, further: Mapping[str, str] | None = None) -> Placed:
        """Send an action; ``further`` headers are kept with it and read by nobody."""
        record = write_action(action)
        headers: list[tuple[str, str | bytes | None]] = list(record.headers)
        headers += [(name, text.encode()) for name, text in (further or {}).items()]
        name, acknowledged = type(action).__name__.lower(), Future[Placed]()

        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged.set_result(Placed(message.partition() or 0, message.offset() or 0))
            else:
                acknowledged.set_exception(KafkaException(error))

        producer = self._started(action.key, name)
        try:
            producer.produce(
                self._topic,
                value=record.value,
                key=record.key,
                headers=headers,
                timestamp=record.timestamp,
                on_delivery=note,
            )
            return acknowledged.result()
        except (KafkaException, BufferError) as error:
            raise self._failed(producer, action.key, name, error) from error

    def _failed(self, producer: Producer, key: str, name: str, error: Exception) -> NotSent:
        found = error.args[0] if isinstance(error, KafkaException) else KafkaError(KafkaError._QUEUE_FULL)
        if found.fatal():  # of no use any more
            with self._lock:
                if self._producer is producer:
                    self._producer = None
        is_certain = found.code() in _CERTAIN
        reason = found.str() if is_certain else self._complaints.about(KafkaException(found))
        return NotSent(self._topic, key, name, reason, is_certain=is_certain)

    def _started(self, key: str, name: str) -> Producer:
        if self._is_closed.is_set():
            raise NotSent(self._topic, key, name, "the journal is closed", is_certain=True)
        with self._lock:
            if self._producer is None:
                self._producer = self._start(key, name)
            return self._producer

    def _start(self, key: str, name: str) -> Producer:
        producer = Producer(
            {
                **self._connection.librdkafka_options(),
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "lz4",
                "partitioner": "murmur2_random",
                "linger.ms": 0,  # somebody waits for every single one
                "delivery.timeout.ms": int(self._patience * 1000),
                "message.max.bytes": 1_000_000_000,  # how large a message may be is the topic's business
                "error_cb": self._complaints.note,
                "log_level": 0,  # what is worth knowing is in the errors that are raised
            }
        )
        try:
            # All topics, because asking for one may create it.
            known = producer.list_topics(timeout=self._patience).topics
        except KafkaException as error:
            reason = self._complaints.about(error)
            raise NotSent(self._topic, key, name, reason, is_certain=True) from error
        if self._topic not in known:
            raise NoJournalTopic(self._topic, self._connection.servers)
        threading.Thread(target=self._serve, args=(producer,), name="tidemark-journal", daemon=True).start()
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
