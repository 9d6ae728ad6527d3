"""What files and kafka writers of a test's pipeline have delivered, and what changes under them."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition
from tests.support.services.log_runs import LogRuns, declare_log
from tests.support.waiting import wait_until

from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.writers.kafka.target import TargetTopic, describe_topic


def declare_republished(services: Any, root: Path, patch: pytest.MonkeyPatch, **keys: str) -> LogRuns:
    """A pipeline of one topic, with a topic beside it that a kafka writer may republish to."""
    name = f"republished-{uuid4().hex[:8]}"
    for topic in (name, f"{name}.out"):
        services.create_topic(topic, partitions=1)
    connections = Connections(
        kafka=services.kafka,
        cassandra={"cassandra_default": services.cassandra},
        kafka_targets={"kafka_default": services.kafka},
    )
    return declare_log(root, name, connections, patch, **keys)


def send(services: Any, topic: str, count: int, partitions: int = 1) -> None:
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for number in range(count):
            value = b'{"n":%d}' % number
            producer.send(topic, key=b"k", value=value, partition=number % partitions)


def state(runs: LogRuns) -> WriterState:
    """What the control plane has of the pipeline's only writer."""
    found = Positions(open_control(runs.connections), runs.name).load("archive")
    assert found is not None
    return found


def archived(runs: LogRuns) -> list[int]:
    """The ids in the files of a files writer, in the order of the files."""
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
    """Delete the topic that is republished to, and create it again."""
    topic = f"{runs.name}.out"
    with KafkaAdminClient(**services.kafka.client_options()) as admin:
        admin.delete_topics([topic])
        wait_until(lambda: topic not in admin.list_topics(), 30, f"{topic} is gone")
    services.create_topic(topic, partitions)
    wait_until(lambda: describe_topic(target_of(runs)).partitions == partitions, 30, f"{topic} is back")


def target_of(runs: LogRuns) -> TargetTopic:
    return TargetTopic(runs.name, "archive", f"{runs.name}.out", "kafka_default", runs.connections.kafka)
