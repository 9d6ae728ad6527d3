"""The queue between senders and Kafka: bounded in number and bytes, in the order of arrival.

Records of one object keep their order, also when a broken producer is replaced. The queue never waits and
never blocks: its owner calls ``poll`` from time to time while the queue is busy. What is in it is lost when
the process ends, so nothing in it has been acknowledged to a sender.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from tidemark.kafka.errors import KafkaFailure
from tidemark.oplog.agent.ingest.counters import IngestCounters

MOST_IN_FLIGHT = 20_000
"""Records that the client has at most; the rest waits here, in order."""
MOST_BYTES = 128_000_000
"""Keys and values of all operations in the queue: its number alone would not bound its memory."""
STALLED_AFTER = 5.0
"""Seconds without an acknowledgement, while records are in flight, after which Kafka counts as away."""
REPLACED_EVERY = 1.0
"""Seconds between two attempts to replace a broken producer."""
LOGGED_EVERY = 60.0

events = structlog.get_logger()


class RecordProducer(Protocol):
    """What the queue needs of a producer; see ``tidemark.kafka.producer.PolledProducer``."""

    def send(self, partition: int, key: bytes, value: bytes, item: "QueuedOperation") -> bool:
        """See ``PolledProducer.send``."""

    def poll(self) -> None:
        """See ``PolledProducer.poll``."""

    def abandon(self) -> None:
        """See ``PolledProducer.abandon``."""


@dataclass(slots=True, eq=False)
class QueuedOperation:
    """An operation on its way to Kafka.

    Attributes:
        key: The record's key.
        value: The record's value.
        report: Called once with None when Kafka has acknowledged it, else with the reason why it is not known
            to be in the topic. None where no sender waits: such an operation is sent again by the next
            producer where that is possible.
    """

    key: bytes
    value: bytes
    report: Callable[[str | None], None] | None = None
    size: int = field(init=False)
    """The bytes that it has in the queue."""

    def __post_init__(self) -> None:
        self.size = len(self.key) + len(self.value)


Done = Callable[[QueuedOperation, KafkaFailure | None], None]
NewProducer = Callable[[Done], RecordProducer]
"""Makes a producer that reports what became of each record."""


class IngestQueue:
    """Operations that wait for Kafka. Not thread-safe: it belongs to one event loop."""

    def __init__(
        self,
        most: int,
        counters: IngestCounters,
        partition_of: Callable[[bytes], int],
        new_producer: NewProducer,
        *,
        clock: Callable[[], float] = time.monotonic,
        most_bytes: int = MOST_BYTES,
        most_in_flight: int = MOST_IN_FLIGHT,
    ) -> None:
        """``most``: the maximum of operations, waiting or in flight. ``clock``: seconds that only grow."""
        self.most, self.partition_of = most, partition_of
        self.wake: Callable[[], object] = lambda: None
        """Called when the queue becomes busy, so that its owner polls."""
        self.last_failure: str | None = None
        self._counters, self._new_producer, self._clock = counters, new_producer, clock
        self._most_bytes, self._most_in_flight, self._bytes = most_bytes, most_in_flight, 0
        self._waiting: deque[QueuedOperation] = deque()
        self._in_flight: dict[QueuedOperation, None] = {}
        """In the order in which they were sent."""
        self._producer: RecordProducer | None = new_producer(self._done)
        self._is_broken = self._is_replacing = False
        self._progress = self._replaced = clock()
        self._logged = -LOGGED_EVERY

    @property
    def waiting(self) -> int:
        """Operations that have not been handed to the client."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """Operations that the client has, without an acknowledgement."""
        return len(self._in_flight)

    @property
    def is_busy(self) -> bool:
        """Whether the queue has to be polled."""
        return bool(self._in_flight or self._waiting)

    @property
    def is_stalled(self) -> bool:
        """Whether Kafka has acknowledged nothing for a while, although it should."""
        return self.is_busy and self._clock() - self._progress > STALLED_AFTER

    def has_room(self, count: int, size: int) -> bool:
        """Whether so many operations, of so many bytes together, can be added."""
        free = self.most - len(self._waiting) - len(self._in_flight)
        return count <= free and self._bytes + size <= self._most_bytes

    def put(self, operation: QueuedOperation) -> None:
        """Add an operation. The caller has made sure that there is room."""
        in_flight = self._in_flight
        if not in_flight and not self._waiting:
            self._progress = self._clock()
            self.wake()
        self._bytes += operation.size
        # Twenty thousand times a second: what need not wait is not made to.
        if self._waiting or len(in_flight) >= self._most_in_flight or not self._hand_over(operation):
            self._waiting.append(operation)

    def poll(self) -> None:
        """Take acknowledgements, send what waits, and replace a producer that is broken."""
        before = self._counters.ingested
        if self._producer is not None:
            self._producer.poll()
        if self._counters.ingested > before:
            self._progress = self._clock()
        if self._is_broken:
            self._replace()
        self._send()

    def close(self) -> int:
        """End the producer; returns how many operations were given up."""
        self._is_replacing = True
        if self._producer is not None:
            self._producer.abandon()
            self._producer = None
        given_up = (*self._in_flight, *self._waiting)
        for operation in given_up:
            self._fail(operation, "the agent was stopped")
        self._in_flight.clear()
        self._waiting.clear()
        return len(given_up)

    def _send(self) -> None:
        while self._waiting and len(self._in_flight) < self._most_in_flight:
            if not self._hand_over(self._waiting[0]):
                return
            self._waiting.popleft()

    def _hand_over(self, operation: QueuedOperation) -> bool:
        """Give an operation to the producer; False where it has to wait."""
        if self._producer is None or self._is_broken:
            return False
        self._in_flight[operation] = None
        try:
            key = operation.key
            taken = self._producer.send(self.partition_of(key), key, operation.value, operation)
        except KafkaFailure as failure:
            self._done(operation, failure)
            return True
        if not taken:
            del self._in_flight[operation]
        return taken

    def _done(self, operation: QueuedOperation, failure: KafkaFailure | None) -> None:
        if failure is None:
            if self._in_flight.pop(operation, operation) is operation:
                return  # it was reported before
            self._bytes -= operation.size
            self._counters.ingested += 1
            if operation.report is not None:
                operation.report(None)
        elif failure.is_fatal:
            self._is_broken = True  # what is in flight goes to the next producer
        elif not self._is_replacing and operation in self._in_flight:
            del self._in_flight[operation]
            self._fail(operation, failure.reason)

    def _fail(self, operation: QueuedOperation, reason: str) -> None:
        self._bytes -= operation.size
        self._counters.failed += 1
        self._log_failure(reason)
        if operation.report is not None:
            operation.report(reason)

    def _replace(self) -> None:
        """Begin again with a new producer; operations whose senders wait are reported as failed.

        They may be in the topic. What is sent again keeps its order, so an object's last operation stays its
        last one.
        """
        now = self._clock()
        if self._producer is not None:
            self._is_replacing = True
            self._producer.abandon()
            self._producer, self._is_replacing = None, False
            unacknowledged = list(self._in_flight)
            self._in_flight.clear()
            for operation in unacknowledged:
                if operation.report is not None:
                    self._fail(operation, "Kafka's producer had to be replaced")
            self._waiting.extendleft(one for one in reversed(unacknowledged) if one.report is None)
            self._log_failure("Kafka's producer had to be replaced")
        if now - self._replaced < REPLACED_EVERY:
            return
        self._replaced = now
        try:
            self._producer = self._new_producer(self._done)
        except KafkaFailure as failure:
            self._log_failure(failure.reason)
        else:
            self._is_broken = False

    def _log_failure(self, reason: str) -> None:
        now = self._clock()
        if reason != self.last_failure or now - self._logged >= LOGGED_EVERY:
            self.last_failure, self._logged = reason, now
            events.warning("operations not sent", reason=reason, failed=self._counters.failed)
