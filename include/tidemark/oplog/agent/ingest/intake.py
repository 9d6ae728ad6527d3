"""Takes operations in: checks them, counts them, and puts them into the queue.

Raises nothing for bad input by UDP, which has no sender to tell: it is counted. Operations of a request are
checked together before any of them is put into the queue.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import ObjectOperation, encoded
from tidemark.operations.reading import read_operation
from tidemark.oplog.agent.ingest.counters import IngestCounters
from tidemark.oplog.agent.ingest.queue import IngestQueue, QueuedOperation


@dataclass(frozen=True, slots=True)
class BadLine:
    """An operation of a request that is refused.

    Attributes:
        number: The number of its line, from 1.
        reason: Why, as a clause about it.
    """

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class LineRead:
    """A valid operation of a request, with its line's number and its record."""

    number: int
    operation: ObjectOperation
    record: QueuedOperation


@dataclass(slots=True)
class SentOperations:
    """The operations of one request on their way to Kafka.

    Attributes:
        count: How many they are.
        done: Resolved when it is known what became of each of them.
        acknowledged: The numbers of the lines that Kafka has.
        failed: The reasons of those that are not known to be in the topic, by number.
    """

    count: int
    done: asyncio.Future[None]
    acknowledged: list[int] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)

    def reporter(self, number: int) -> Callable[[str | None], None]:
        """The function that the queue calls when it is known what became of one line."""

        def report(reason: str | None) -> None:
            if reason is None:
                self.acknowledged.append(number)
            else:
                self.failed[number] = reason
            if len(self.acknowledged) + len(self.failed) == self.count and not self.done.done():
                self.done.set_result(None)

        return report


class Intake:
    """The way in for every operation of one agent."""

    def __init__(self, queue: IngestQueue, counters: IngestCounters) -> None:
        self.queue, self.counters = queue, counters

    def take_datagram(self, text: bytes, received: int) -> None:
        """Take the operation of a datagram that was received at this time, in ms. Never raises for it."""
        self.counters.received += 1
        # Before it is read: an agent that cannot keep up has no time for what it discards.
        if not self.queue.has_room(1, len(text)):
            self.counters.discarded += 1
            return
        try:
            operation = read_operation(text, received)
        except BadOperation:
            self.counters.error += 1
            return
        self.queue.put(QueuedOperation(operation.key, encoded(operation)))

    def read_lines(
        self, lines: Iterable[tuple[int, bytes]], received: int
    ) -> tuple[list[LineRead], list[BadLine]]:
        """The operations of a request, or what is wrong with it. Bad ones are counted; good ones are not,
        before they are sent."""
        good: list[LineRead] = []
        bad: list[BadLine] = []
        for number, text in lines:
            try:
                operation = read_operation(text, received)
            except BadOperation as error:
                bad.append(BadLine(number, str(error)))
            else:
                record = QueuedOperation(operation.key, encoded(operation))
                good.append(LineRead(number, operation, record))
        self.counters.received += len(bad)
        self.counters.error += len(bad)
        return good, bad

    def send(self, lines: Sequence[LineRead]) -> SentOperations | None:
        """Put the operations of a request into the queue; None where it has no room for all of them."""
        if not self.queue.has_room(len(lines), sum(line.record.size for line in lines)):
            return None
        sent = SentOperations(len(lines), asyncio.get_running_loop().create_future())
        self.counters.received += len(lines)
        for line in lines:
            line.record.report = sent.reporter(line.number)
            self.queue.put(line.record)
        return sent
