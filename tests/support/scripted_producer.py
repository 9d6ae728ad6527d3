"""A producer of Kafka records without Kafka: a test says which records are acknowledged, and when."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidemark.kafka.errors import KafkaFailure


def failure(reason: str, *, fatal: bool = False) -> KafkaFailure:
    found = KafkaFailure(reason)
    found.is_fatal = fatal
    return found


@dataclass
class ScriptedProducer:
    """Keeps what it is given until the test acknowledges it, or acknowledges everything at each poll."""

    acknowledges: bool = False
    is_full: bool = False
    refuses: KafkaFailure | None = None
    sent: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    under_way: list[Any] = field(default_factory=list)
    report: Callable[[Any, KafkaFailure | None], object] = lambda item, failure: None
    is_abandoned: bool = False

    def reporting(self, report: Callable[[Any, KafkaFailure | None], object]) -> "ScriptedProducer":
        """The same producer, which reports to this function from now on."""
        self.report = report
        return self

    def send(self, partition: int, key: bytes, value: bytes, item: Any) -> bool:
        if self.refuses is not None:
            raise self.refuses
        if self.is_full:
            return False
        self.sent.append((partition, key, value))
        self.under_way.append(item)
        return True

    def poll(self) -> None:
        if self.acknowledges:
            self.finish(len(self.under_way))

    def finish(self, count: int = 1, failed: KafkaFailure | None = None) -> None:
        """Report the oldest records as acknowledged, or as failed."""
        finished, self.under_way = self.under_way[:count], self.under_way[count:]
        for item in finished:
            self.report(item, failed)

    def abandon(self) -> None:
        self.is_abandoned = True
        self.finish(len(self.under_way), failure("purged"))

    @property
    def values(self) -> list[bytes]:
        return [value for _, _, value in self.sent]
