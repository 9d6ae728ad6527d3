"""Kafka and Cassandra for one measurement alone, in a home and on ports of their own."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidemark.cassandra.session import disconnect_all
from tidemark.connections import CassandraConnection, KafkaConnection
from tidemark.embedded.home import make_home
from tidemark.embedded.jars.class_archive import ensure_class_archive
from tidemark.embedded.lifecycle import down, up
from tidemark.embedded.ports import LOOPBACK, free_port
from tidemark.embedded.state import SparkMode
from tidemark.settings import Settings


@dataclass(frozen=True)
class Own:
    """Services that only this measurement uses."""

    settings: Settings
    kafka: KafkaConnection
    cassandra: CassandraConnection

    def start(self, *services: str) -> None:
        """Start services with the options of ``make up``, except those that are running."""
        up(self.settings, services, SparkMode.LOCAL)

    def start_all(self, mode: SparkMode) -> None:
        """Start everything that ``make up`` starts."""
        up(self.settings, spark_mode=mode)


@contextmanager
def own_services(
    pipeline: str | None = None, services: Sequence[str] = ("kafka", "cassandra"), *, spark: bool = True
) -> Iterator[Own]:
    """Running services. ``pipeline``: the text of a pipeline file, with ``{folder}`` for its data.

    ``spark`` says whether the measurement starts Spark, which needs its class archive.
    """
    with tempfile.TemporaryDirectory() as folder:
        used: set[int] = set()
        for service in ("KAFKA", "CASSANDRA", "AIRFLOW", "SPARK", "OPLOG"):
            used.add(port := free_port(used))
            os.environ[f"TIDEMARK_{service}_PORT"] = str(port)
        pipelines = Path(folder, "pipelines")
        pipelines.mkdir()
        if pipeline:
            (pipelines / "bench.yaml").write_text(pipeline.format(folder=folder))
        os.environ |= {"TIDEMARK_HOME": f"{folder}/home", "TIDEMARK_PIPELINES": str(pipelines)}
        settings = Settings.read()
        if spark:
            ensure_class_archive(settings)
        make_home(settings)
        own = Own(
            settings,
            KafkaConnection(servers=f"{LOOPBACK}:{settings.kafka_port}"),
            CassandraConnection(hosts=(LOOPBACK,), port=settings.cassandra_port),
        )
        try:
            own.start(*services)
            yield own
        finally:
            disconnect_all()
            down(settings)
