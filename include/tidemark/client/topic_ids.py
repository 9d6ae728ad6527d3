"""Kafka's answer to the question which topic has a name: asked while something else goes on, and waited for.

Asks for metadata only, and never makes a topic.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from tidemark.client.errors import NoJournalTopic, TopicUnconfirmed
from tidemark.connections import KafkaConnection
from tidemark.writers.kafka.target import Complaints

NO_ID = UUID(int=0)
"""What a broker that knows no ids says."""
KNOWN_WITHIN = 2.0
"""Seconds in which a topic that was made just now becomes known to every broker."""
ASKED_AGAIN_AFTER = 0.05


class KafkaTopics:
    """One topic's id; the client is started by the first question and shared by all threads."""

    def __init__(self, topic: str, connection: KafkaConnection, patience: float) -> None:
        self._topic, self._connection, self._patience = topic, connection, patience
        self._complaints = Complaints()
        self._lock = threading.Lock()
        self._admin: AdminClient | None = None

    def ask(self, key: str) -> Callable[[], str | None]:
        """See ``Topics.ask``."""
        asked, deadline = self._describe(key), time.monotonic() + KNOWN_WITHIN

        def answer() -> str | None:
            waiting = asked
            while True:
                try:
                    found = uuid_of(waiting.result().topic_id)
                except KafkaException as error:
                    if not _is_unknown(error) or time.monotonic() >= deadline:
                        raise self._failed(key, error) from error
                    time.sleep(ASKED_AGAIN_AFTER)
                    waiting = self._describe(key)
                else:
                    return None if found == NO_ID else str(found)

        return answer

    def _describe(self, key: str) -> "Future[Any]":
        try:
            asked = self._started().describe_topics(
                TopicCollection([self._topic]), request_timeout=self._patience
            )
        except KafkaException as error:
            raise self._failed(key, error) from error
        return asked[self._topic]

    def _started(self) -> AdminClient:
        with self._lock:
            if self._admin is None:
                options: dict[str, Any] = {
                    **self._connection.librdkafka_options(),
                    "error_cb": self._complaints.note,
                    "log_level": 0,  # what is worth knowing is in the errors that are raised
                }
                self._admin = AdminClient(options)
            return self._admin

    def _failed(self, key: str, error: KafkaException) -> NoJournalTopic | TopicUnconfirmed:
        if _is_unknown(error):
            return NoJournalTopic(self._topic, self._connection.servers)
        return TopicUnconfirmed(self._topic, key, self._complaints.about(error))

    def close(self) -> None:
        """See ``Topics.close``: a client without questions needs no farewell."""
        with self._lock:
            self._admin = None


def _is_unknown(error: KafkaException) -> bool:
    return bool(error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART)


def uuid_of(topic_id: Any) -> UUID:
    """An id of librdkafka's in the form that bindings keep."""
    halves = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
    return UUID(bytes=b"".join(half.to_bytes(8, "big", signed=True) for half in halves))
