"""Waking processes that wait for work: a message in Kafka says that something was inserted.

It is a hint and nothing more. A message that is lost, late or for nothing costs time or a query, never an
entry: a waiting process looks at the journal again after a while in any case.
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
    """What wakes, and what waits."""

    def ring(self, key: str) -> None:
        """Say that there is something new."""

    def listen(self, seconds: float) -> bool:
        """Hear everything that is said from now on; True if that begins now. Takes so long at most."""

    def wait(self, seconds: float) -> bool:
        """Wait for that; False if it did not come."""

    def close(self) -> None:
        """Stop."""


class KafkaBell:
    """A topic; every waiting process reads it from where it ends."""

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
        """See ``Bell.listen``; without Kafka nothing is heard, and ``wait`` says so."""
        if self._listener is not None:
            return False
        try:
            self._listener = self._listening(min(seconds, PATIENCE))
        except KafkaFailure:
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """See ``Bell.wait``; without Kafka the time passes, and the caller looks then."""
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
