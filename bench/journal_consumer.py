"""The usual hand-written consumer: kafka-python, one prepared insert per event, 256 in flight."""

import json
import time
from collections import deque

from kafka import KafkaConsumer
from kafka.structs import TopicPartition

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection, KafkaConnection

IN_FLIGHT = 256


def measure(kafka: KafkaConnection, cassandra: CassandraConnection, topic: str, records: int) -> float:
    """Records a second."""
    session = connect(cassandra)
    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS consumed WITH replication = "
        "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    session.execute(
        "CREATE TABLE IF NOT EXISTS consumed.events (id text, seq_nr bigint, payload text, "
        "PRIMARY KEY (id, seq_nr))"
    )
    insert = session.prepare("INSERT INTO consumed.events (id, seq_nr, payload) VALUES (?, ?, ?)")
    under_way: deque = deque()
    consumed, began = 0, None
    with KafkaConsumer(**kafka.client_options(), auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while consumed < records:
            for found in consumer.poll(1000, max_records=500).values():
                began = began or time.monotonic()
                for record in found:
                    for event in json.loads(record.value)["events"]:
                        if len(under_way) >= IN_FLIGHT:
                            under_way.popleft().result()
                        values = (record.key.decode(), event["seqNr"], json.dumps(event["payload"]))
                        under_way.append(session.execute_async(insert, values))
                    consumed += 1
    while under_way:
        under_way.popleft().result()
    seconds = time.monotonic() - began
    session.execute("DROP KEYSPACE consumed")
    return consumed / seconds
