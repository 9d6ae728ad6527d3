"""Which connections a pipeline needs, collected from wherever connections are kept."""

from collections.abc import Callable, Mapping
from typing import Any

from tidemark.connections import CONTROL, CassandraConnection, Connections, KafkaConnection
from tidemark.pipeline.model import Pipeline

Lookup = Callable[[str], Mapping[str, Any]]
"""From a connection's name to the connection as Airflow keeps it."""


def collect_connections(pipeline: Pipeline, look_up: Lookup) -> Connections:
    """Everything the pipeline's applications need to reach their services."""
    kafka = pipeline.source.kafka.connection
    clusters = sorted({CONTROL, *(writer.connection for _, writer in pipeline.journals)})
    letters = {pipeline.dead_letters.connection or kafka} if pipeline.dead_letters else set()
    targets = sorted(letters | {writer.connection for _, writer in pipeline.republishers})
    return Connections(
        kafka=KafkaConnection.from_airflow(kafka, look_up(kafka)),
        cassandra={name: CassandraConnection.from_airflow(name, look_up(name)) for name in clusters},
        kafka_targets={name: KafkaConnection.from_airflow(name, look_up(name)) for name in targets},
    )
