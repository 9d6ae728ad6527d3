"""What files and kafka writers of a test's pipeline have delivered, and what changes under them."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition
from tests.support.services.log_runs import LogRuns
from tests.support.waiting import wait_until

from tidemark.consensus.control_plane import open_control
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.writers.kafka.target import Target, describe_topic


def send(services: Any, topic: str, count: int, partitions: int = 1) -> None:
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for number in range(count):
            value = b'{"n":%d}' % number
            producer.send(topic, key=b"k", value=value, partition=number % partitions)


def state(runs: LogRuns) -> WriterState:
    found = Positions(open_control(runs.connections), runs.name).load("archive")
    assert found is not None
    return found


def archived(runs: LogRuns) -> list[int]:
    folder = Path(runs.pipeline.writers[0].path)
    files = sorted(folder.glob("*.parquet"))
    return [id_ for file in files for id_ in pq.read_table(file)["id"].to_pylist()]


def republished(services: Any, topic: str) -> list[int]:
    """The ids in a topic, as a reader of committed records sees them."""
    options = {**services.kafka.client_options(), "isolation_level": "read_committed"}
    found: list[int] = []
    with KafkaConsumer(**options, auto_offset_reset="earliest") as consumer:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        (end,) = consumer.end_offsets([place]).values()
        while consumer.position(place) < end:
            for record in consumer.poll(1000).get(place, []):
                found.append(int(dict(record.headers)["tidemark-id"]))
    return found


WRITER = 'name: archive, kind: kafka, topic: "{name}.out"'
EXECUTE = ("--execute", "--reason", "made again", "--by", "ann")


def make_again(services: Any, runs: LogRuns, partitions: int = 1) -> None:
    topic = f"{runs.name}.out"
    with KafkaAdminClient(**services.kafka.client_options()) as admin:
        admin.delete_topics([topic])
        wait_until(lambda: topic not in admin.list_topics(), 30, f"{topic} is gone")
    services.create_topic(topic, partitions)
    wait_until(lambda: describe_topic(target(runs)).partitions == partitions, 30, f"{topic} is back")


def target(runs: LogRuns) -> Target:
    return Target(runs.name, "archive", f"{runs.name}.out", "kafka_default", runs.connections.kafka)
