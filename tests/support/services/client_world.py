"""A topic, a keyspace and what replicates between them when it is told to; and records of others."""

import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from kafka import KafkaConsumer
from kafka.structs import TopicPartition
from tests.support.services.journal_world import CassandraJournalWorld, Record

from tidemark import Journal
from tidemark.connections import KafkaConnection
from tidemark.journal.action import Append, append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events

SIZE = 100
"""Of a segment, so that reads go over several."""


class ClientWorld:
    """A topic, a keyspace that may not exist yet, and what replicates between them when it is told to."""

    def __init__(self, services: Any, topic: str, keyspace: str, root: Path) -> None:
        self.services, self.topic, self.keyspace = services, topic, keyspace
        self.house = CassandraJournalWorld(root, services.cassandra, keyspace, SIZE)
        self.replicated: dict[int, int] = {}

    def journal(self, **options: Any) -> Journal:
        connections = {"kafka": self.services.kafka, "cassandra": self.services.cassandra}
        return Journal(self.topic, **{**connections, "keyspace": self.keyspace, **options})

    def replicate(self) -> None:
        """Everything that is in Kafka now, through the journal writer."""
        records = []
        options = self.services.kafka.client_options()
        with KafkaConsumer(isolation_level="read_committed", **options) as consumer:
            places = [TopicPartition(self.topic, p) for p in consumer.partitions_for_topic(self.topic)]
            consumer.assign(places)
            for place, end in consumer.end_offsets(places).items():
                consumer.seek(place, self.replicated.get(place.partition, 0))
                while consumer.position(place) < end:
                    for record in consumer.poll(1000).get(place, []):
                        sent = (record.key, record.value, record.timestamp, tuple(record.headers))
                        records.append(Record(self.topic, record.partition, record.offset, *sent))
                consumer.pause(place)
                self.replicated[place.partition] = end
        self.house.publish(time.time_ns() // 1000, sorted(records, key=lambda one: one.offset))
        self.house.deliver()
        assert self.house.state.gate is None, self.house.state.gate


def fill(kafka: KafkaConnection, topic: str, records: int) -> None:
    """Appends of a hundred other entities."""
    producer = Producer(
        {
            "bootstrap.servers": kafka.servers,
            "linger.ms": 20,
            "compression.type": "lz4",
            "queue.buffering.max.messages": records,
        }
    )
    for number in range(0, records, 100):
        seq_nr = number // 100 + 1
        record = write_action(appended("other", seq_nr))
        for other in range(100):
            producer.produce(topic, record.value, b"other-%d" % other, headers=list(record.headers))
        producer.poll(0)
    producer.flush()


def appended(key: str, seq_nr: int) -> Append:
    return append(key, 1, Events((EncodedEvent(seq_nr, (), "text", "x" * 50),)))
