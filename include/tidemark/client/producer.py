"""Sends actions to a journal's topic, and returns after each is acknowledged.

The producer is idempotent, waits for all replicas, and partitions keys as Java's clients do. A record that
was not acknowledged may be in the topic anyway; it is never sent a second time.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from tidemark.client.errors import NoJournalTopic, NotSent
from tidemark.connections import KafkaConnection
from tidemark.journal.action import Action
from tidemark.journal.codec.record import write_action
from tidemark.kafka.errors import KafkaFailure, UnknownTopic
from tidemark.kafka.producer import Placed, RecordToSend, SharedProducer


@cache
def sent_version() -> str:
    """The version header of records: this library's name and version."""
    try:
        return f"tidemark-{version('tidemark')}"
    except PackageNotFoundError:
        return "unknown"


class ActionSender:
    """One topic's producer: started by the first action, shared by all threads."""

    def __init__(self, topic: str, connection: KafkaConnection, patience: float) -> None:
        self._topic, self._servers = topic, connection.servers
        self._producer = SharedProducer(connection, patience, "tidemark-journal")

    def send(self, action: Action, further: Mapping[str, str] | None = None) -> Placed:
        """Sends an action with ``further`` headers, which no reader interprets."""
        record = write_action(action)
        headers = [*record.headers, *((name, text.encode()) for name, text in (further or {}).items())]
        self._start(action)
        try:
            return self._producer.send(
                RecordToSend(self._topic, record.key, record.value, headers, record.timestamp)
            )
        except KafkaFailure as error:
            reason = error.said if error.is_refused else error.reason
            raise self._not_sent(action, reason, is_certain=error.is_refused) from error

    def _start(self, action: Action) -> None:
        if self._producer.is_closed:
            raise self._not_sent(action, "the journal is closed", is_certain=True)
        try:
            self._producer.start(self._topic)
        except UnknownTopic:
            raise NoJournalTopic(self._topic, self._servers) from None
        except KafkaFailure as error:
            raise self._not_sent(action, error.reason, is_certain=True) from error

    def _not_sent(self, action: Action, reason: str, *, is_certain: bool) -> NotSent:
        name = type(action).__name__.lower()
        return NotSent(self._topic, action.key, name, reason, is_certain=is_certain)

    def close(self) -> None:
        """Closes the producer, and waits for records in flight."""
        self._producer.close()
