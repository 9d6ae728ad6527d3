"""Options of all ``confluent_kafka`` clients, and the translation of their errors."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from tidemark.connections import KafkaConnection
from tidemark.kafka.errors import KafkaFailure, NotAuthorized, OffsetGone, ProducerFenced, UnknownTopic

_KINDS: dict[int, type[KafkaFailure]] = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: UnknownTopic,
    KafkaError._AUTO_OFFSET_RESET: OffsetGone,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAuthorized,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: NotAuthorized,
    KafkaError._FENCED: ProducerFenced,
    KafkaError.PRODUCER_FENCED: ProducerFenced,
    KafkaError.INVALID_PRODUCER_EPOCH: ProducerFenced,
}
_REFUSED = frozenset(
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
"""Error codes after which the record is certainly not in the topic."""


class Complaints:
    """The last error that a client reported in the background: usually the cause of a timeout."""

    def __init__(self) -> None:
        self._last: str | None = None

    def note(self, error: KafkaError) -> None:
        """The client's ``error_cb``."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # less specific than the error before it
            self._last = error.str()

    def about(self, said: str) -> str:
        """An error's text, followed by the last background error."""
        return f"{said} ({self._last})" if self._last else said


def client_options(connection: KafkaConnection, complaints: Complaints) -> dict[str, Any]:
    """The options that all clients share."""
    return {
        **connection.librdkafka_options(),
        "error_cb": complaints.note,
        "log_level": 0,  # the errors that are raised say what matters
    }


def timed_out(what: str) -> KafkaException:
    """The error of a request that timed out, where the client raises none."""
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, what))


def failure_of(error: KafkaException | BufferError, complaints: Complaints) -> KafkaFailure:
    """A client's error as a ``KafkaFailure``. A producer raises ``BufferError`` where its queue is full."""
    found = error.args[0] if isinstance(error, KafkaException) else KafkaError(KafkaError._QUEUE_FULL)
    said = str(found.str())
    failure = _KINDS.get(found.code(), KafkaFailure)(complaints.about(said), said)
    failure.is_fatal, failure.is_refused = bool(found.fatal()), found.code() in _REFUSED
    return failure


@contextmanager
def translating(complaints: Complaints, poll: Callable[[float], Any] | None = None) -> Iterator[None]:
    """Raise the client's errors as ``KafkaFailure``. ``poll`` lets the client report their causes first."""
    try:
        yield
    except (KafkaException, BufferError) as error:
        if poll is not None:
            with suppress(KafkaException):  # after a fatal error, the same one again
                poll(0)
        raise failure_of(error, complaints) from error
