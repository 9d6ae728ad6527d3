"""Wakes processes that wait for work, by a message in Kafka after each insert.

The message is only a hint. A lost, late or spurious one costs time or a query, never an entry: a waiting
process polls the journal in any case.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from tidemark.connections import KafkaConnection
from tidemark.kafka.errors import KafkaFailure
from tidemark.kafka.hints import HintListener, HintSender

AT_ONCE = b"insert"
PATIENCE = 5.0
_LOG = logging.getLogger(__name__)


class Bell(Protocol):
    """Wakes waiting processes, and waits to be woken."""

    def ring(self, key: str) -> None:
        """Wakes all waiting processes."""

    def listen(self, seconds: float) -> bool:
        """Starts listening, within ``seconds``; False where it listened already or cannot."""

    def wait(self, seconds: float) -> bool:
        """Waits to be woken; False after ``seconds``."""

    def close(self) -> None:
        """Closes the clients."""


class KafkaBell:
    """A bell on a Kafka topic; every waiting process reads it from its end."""

    def __init__(
        self,
        journal: str,
        topic: str,
        connection: KafkaConnection,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._journal, self._topic, self._connection = journal, topic, connection
        self._clock, self._sleep = clock, sleep
        self._sender: HintSender | None = None
        self._listener: HintListener | None = None

    def ring(self, key: str) -> None:
        """See ``Bell.ring``."""
        try:
            if self._sender is None:
                self._sender = HintSender(self._connection, self._topic)
            self._sender.send(self._journal.encode(), AT_ONCE)
        except KafkaFailure as error:
            _LOG.warning("%s: no process was woken up over %s (%s)", self._journal, self._topic, error.reason)

    def listen(self, seconds: float) -> bool:
        """See ``Bell.listen``; without Kafka it returns False, and ``wait`` logs the error."""
        if self._listener is not None:
            return False
        try:
            self._listener = self._listening(min(seconds, PATIENCE))
        except KafkaFailure:
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """See ``Bell.wait``; without Kafka it sleeps, and the caller polls afterwards."""
        until = self._clock() + seconds
        try:
            if self._listener is None:
                self._listener = self._listening(min(seconds, PATIENCE))
            return self._listener.wait(max(0.0, until - self._clock()))
        except KafkaFailure as error:
            _LOG.warning("%s: no process is woken up over %s (%s)", self._journal, self._topic, error.reason)
        self._sleep(max(0.0, until - self._clock()))
        return False

    def _listening(self, patience: float) -> HintListener:
        return HintListener(self._connection, self._topic, f"tidemark-work-{self._journal}", patience)

    def close(self) -> None:
        """See ``Bell.close``."""
        if self._sender is not None:
            self._sender.close()
        if self._listener is not None:
            self._listener.close()
