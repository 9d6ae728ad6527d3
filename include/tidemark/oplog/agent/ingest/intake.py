"""Takes operations in: checks them, counts them, and puts them into the queue.

Raises nothing for bad input by UDP, which has no sender to tell: it is counted. Operations of a request are
checked together before any of them is put into the queue.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidemark.oplog.agent.ingest.counters import IngestCounters
from tidemark.oplog.agent.ingest.queue import IngestQueue, QueuedOperation
from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import ObjectOperation, encoded
from tidemark.operations.reading import read_operation


@dataclass(frozen=True, slots=True)
class BadLine:
    """An operation of a request that is refused.

    Attributes:
        number: The number of its line, from 1.
        reason: Why, as a clause about it.
    """

    number: int
    reason: str


@dataclass(slots=True)
class SentOperations:
    """The operations of one request on their way to Kafka.

    Attributes:
        lines: The numbers of their lines.
        acknowledged: The numbers of those that Kafka has.
        failed: The reasons of those that are not known to be in the topic, by number.
        done: Resolved when each of them is in one of these two.
    """

    lines: Sequence[int]
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
            if len(self.acknowledged) + len(self.failed) == len(self.lines) and not self.done.done():
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
        self, lines: Sequence[tuple[int, bytes]], received: int
    ) -> tuple[list[ObjectOperation], list[BadLine]]:
        """The operations of a request, or what is wrong with it. Bad ones are counted; good ones are not,
        before they are sent."""
        good: list[ObjectOperation] = []
        bad: list[BadLine] = []
        for number, text in lines:
            try:
                good.append(read_operation(text, received))
            except BadOperation as error:
                bad.append(BadLine(number, str(error)))
        self.counters.received += len(bad)
        self.counters.error += len(bad)
        return good, bad

    def send(self, numbers: Sequence[int], operations: Sequence[ObjectOperation]) -> SentOperations | None:
        """Put the operations of a request into the queue; None where it has no room for all of them."""
        records = [(operation.key, encoded(operation)) for operation in operations]
        if not self.queue.has_room(len(records), sum(len(key) + len(value) for key, value in records)):
            return None
        sent = SentOperations(numbers, asyncio.get_running_loop().create_future())
        self.counters.received += len(records)
        for number, (key, value) in zip(numbers, records, strict=True):
            self.queue.put(QueuedOperation(key, value, sent.reporter(number)))
        return sent
