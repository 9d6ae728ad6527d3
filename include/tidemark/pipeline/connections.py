"""Collects the connections that a pipeline needs, from any store of connections."""

from collections.abc import Callable, Mapping
from typing import Any

from tidemark.connections import (
    CONTROL,
    CassandraConnection,
    Connections,
    KafkaConnection,
    OtherConnection,
    SparkConnection,
)
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.writers import ConnectionType

Lookup = Callable[[str], Mapping[str, Any]]
"""From a connection's name to the connection as Airflow keeps it."""


def collect_connections(pipeline: Pipeline, look_up: Lookup) -> Connections:
    """All connections that the pipeline needs, except to Spark: most code does not use it."""
    kafka = pipeline.source.kafka.connection
    needed = {one for writer in pipeline.writers for one in writer.connections()}

    def ids(type_: ConnectionType, *more: str) -> list[str]:
        return sorted({*more, *(one.id for one in needed if one.type is type_)})

    letters = [pipeline.dead_letters.connection or kafka] if pipeline.dead_letters else []
    clusters, targets = ids(ConnectionType.CASSANDRA, CONTROL), ids(ConnectionType.KAFKA, *letters)
    others = ids(ConnectionType.OTHER)
    return Connections(
        kafka=KafkaConnection.from_airflow(kafka, look_up(kafka)),
        cassandra={name: CassandraConnection.from_airflow(name, look_up(name)) for name in clusters},
        kafka_targets={name: KafkaConnection.from_airflow(name, look_up(name)) for name in targets},
        others={name: OtherConnection.from_airflow(name, look_up(name)) for name in others},
    )


def collect_engine_connections(pipeline: Pipeline, look_up: Lookup) -> Connections:
    """All connections that the pipeline's Spark applications need."""
    name = pipeline.spark.connection
    spark = SparkConnection.from_airflow(name, look_up(name))
    return collect_connections(pipeline, look_up).model_copy(update={"spark": spark})
