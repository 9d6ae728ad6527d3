"""Kafka's C clients without Kafka: a test says what they hand out, and sees what they were asked for."""

from types import SimpleNamespace
from typing import Any, ClassVar

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError

from tidemark.connections import KafkaConnection

NOWHERE = KafkaConnection(servers="127.0.0.1:1")
EOF = KafkaError(KafkaError._PARTITION_EOF)


def message(offset: int, error: KafkaError | None = None, **values: Any) -> Any:
    """A message of the client's; with an error, what it hands out instead of one."""
    values = {
        "partition": 0,
        "offset": offset,
        "error": error,
        "key": b"k",
        "value": None,
        "timestamp": (TIMESTAMP_CREATE_TIME, 7),
        "headers": [],
        "leader_epoch": None,
    } | values
    return SimpleNamespace(**{name: lambda value=value: value for name, value in values.items()})


class FakeConsumer:
    """Hands out what a test put there, one by one. Its cluster has the topic ``orders``."""

    messages: ClassVar[list[Any]] = []
    assigned: ClassVar[list[Any]] = []
    options: ClassVar[dict[str, Any]] = {}
    made: ClassVar[list["FakeConsumer"]] = []

    def __init__(self, options: dict[str, Any]) -> None:
        type(self).options = options
        self.is_closed = False
        self.made.append(self)

    def list_topics(self, topic: str, timeout: float) -> Any:
        unknown = None if topic == "orders" else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions={0: None, 1: None}, error=unknown)})

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int] | None:
        return place.partition, 9

    def assign(self, places: list[Any]) -> None:
        type(self).assigned = [(one.topic, one.partition, one.offset) for one in places]

    def unassign(self) -> None:
        pass

    def poll(self, timeout: float) -> Any:
        return self.messages.pop(0) if self.messages else None

    def consume(self, count: int, timeout: float) -> list[Any]:
        return []

    def close(self) -> None:
        self.is_closed = True


class FakeProducer:
    """Acknowledges what it is given, or as many as a test says. Its cluster has the topic ``orders``."""

    produced: ClassVar[list[dict[str, Any]]] = []
    calls: ClassVar[list[str]] = []
    acknowledges: ClassVar[int] = 100
    error: ClassVar[KafkaError] = KafkaError(KafkaError.NOT_ENOUGH_REPLICAS)
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, options: dict[str, Any]) -> None:
        type(self).options, type(self).produced, type(self).calls = options, [], []

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={"orders": None})

    def produce(self, topic: str, **fields: Any) -> None:
        self.produced.append({"topic": topic, **fields})
        number = len(self.produced)
        error = None if number <= self.acknowledges else self.error
        if note := fields.get("on_delivery"):
            note(error, message(100 + number))

    def poll(self, timeout: float) -> None:
        pass

    def flush(self, timeout: float) -> None:
        pass

    def purge(self) -> None:
        self.calls.append("purge")

    def close(self) -> None:
        self.calls.append("close")

    def init_transactions(self, timeout: float) -> None:
        self.calls.append("init")

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def commit_transaction(self, timeout: float) -> None:
        self.calls.append("commit")
