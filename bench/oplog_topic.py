"""The topic of the measurements as Kafka has it: how many records, and how long each took to get there."""

import time
from dataclasses import dataclass

import numpy as np
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.connections import KafkaConnection
from tidemark.operations.reading import read_operation

PARTITIONS = 4


def create_topic(kafka: KafkaConnection, topic: str) -> None:
    """A topic as the agent makes its own."""
    config = {"message.timestamp.type": "LogAppendTime"}
    new = NewTopic(topic, PARTITIONS, 1, config=config)
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.create_topics([new])[topic].result(30)


@dataclass(frozen=True)
class TopicEnds:
    """The next offset of each partition at a moment."""

    of: tuple[int, ...]

    def records_since(self, earlier: "TopicEnds") -> int:
        """The number of records between two moments."""
        return sum(self.of) - sum(earlier.of)


class WatchedTopic:
    """A topic that is read from outside."""

    def __init__(self, kafka: KafkaConnection, topic: str) -> None:
        self.topic = topic
        options = {"bootstrap.servers": kafka.servers, "group.id": "bench", "enable.auto.commit": False}
        self._consumer = Consumer({**options, "auto.offset.reset": "error", "enable.partition.eof": False})

    def ends(self) -> TopicEnds:
        """The next offsets now."""
        places = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]
        return TopicEnds(tuple(self._consumer.get_watermark_offsets(one, timeout=30)[1] for one in places))

    def wait_for(self, since: TopicEnds, count: int, seconds: float = 120) -> int:
        """Wait until so many records were added, or no more arrive; returns how many there are."""
        deadline, last = time.monotonic() + seconds, (0, time.monotonic())
        while (found := self.ends().records_since(since)) < count and time.monotonic() < deadline:
            if found > last[0]:
                last = found, time.monotonic()
            elif time.monotonic() - last[1] > 10:
                break  # nothing more arrives
            time.sleep(0.02)
        return found

    def milliseconds(self, first: TopicEnds, last: TopicEnds) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """From the sender's time to the broker's, of every record between two moments."""
        starts = [TopicPartition(self.topic, number, offset) for number, offset in enumerate(first.of)]
        self._consumer.assign(starts)
        count = last.records_since(first)
        taken: list[int] = []
        while len(taken) < count:
            messages = self._consumer.consume(5_000, 10)
            assert messages, f"{len(taken)} of {count} records were read"
            for message in messages:
                assert message.error() is None, message.error()
                value = message.value()
                assert value is not None
                taken.append(message.timestamp()[1] - read_operation(value).timestamp)
        self._consumer.unassign()
        return np.array(taken[:count])

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()
