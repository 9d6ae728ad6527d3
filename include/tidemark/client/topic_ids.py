"""The id of a topic, requested from Kafka asynchronously.

Requests metadata only, and never creates a topic.
"""

import threading
import time
from collections.abc import Callable

from tidemark.client.errors import NoJournalTopic, TopicUnconfirmed
from tidemark.connections import KafkaConnection
from tidemark.kafka.errors import KafkaFailure, UnknownTopic
from tidemark.kafka.topics import TopicDescription, TopicQuestions

KNOWN_WITHIN = 2.0
"""Seconds within which a new topic becomes known to every broker."""
ASKED_AGAIN_AFTER = 0.05


class KafkaTopics:
    """One topic's id. The first request starts the client, which all threads share."""

    def __init__(self, topic: str, connection: KafkaConnection, patience: float) -> None:
        self._topic, self._connection, self._patience = topic, connection, patience
        self._lock = threading.Lock()
        self._questions: TopicQuestions | None = None

    def ask(self, key: str) -> Callable[[], str | None]:
        """See ``Topics.ask``."""
        asked, deadline = self._describe(key), time.monotonic() + KNOWN_WITHIN

        def answer() -> str | None:
            waiting = asked
            while True:
                try:
                    found = waiting().id
                    return str(found) if found else None
                except KafkaFailure as error:
                    if not isinstance(error, UnknownTopic) or time.monotonic() >= deadline:
                        raise self._failed(key, error) from error
                time.sleep(ASKED_AGAIN_AFTER)
                waiting = self._describe(key)

        return answer

    def _describe(self, key: str) -> Callable[[], TopicDescription]:
        try:
            return self._started().ask(self._topic)
        except KafkaFailure as error:
            raise self._failed(key, error) from error

    def _started(self) -> TopicQuestions:
        with self._lock:
            if self._questions is None:
                self._questions = TopicQuestions(self._connection, self._patience)
            return self._questions

    def _failed(self, key: str, error: KafkaFailure) -> NoJournalTopic | TopicUnconfirmed:
        if isinstance(error, UnknownTopic):
            return NoJournalTopic(self._topic, self._connection.servers)
        return TopicUnconfirmed(self._topic, key, error.reason)

    def close(self) -> None:
        """See ``Topics.close``."""
        with self._lock:
            self._questions = None
