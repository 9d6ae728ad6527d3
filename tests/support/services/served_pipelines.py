"""A pipeline of operations with its agents, its collection, and the runs that fill it, on real services."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.agents import AgentPipeline, agent_pipeline
from tests.support.services.log_runs import LogRuns, deliver_here, publish_here

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.kafka.consumer import PartitionReader


@dataclass(frozen=True)
class ServedPipeline:
    """See the module.

    Attributes:
        agents: Starts its agents.
        runs: Its log.
        partitions: Of its topic.
    """

    agents: AgentPipeline
    runs: LogRuns
    partitions: int

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(self.runs.pipeline, self.runs.connections)

    def capture(self) -> None:
        """What the topic has, in the commit log."""
        publish_here(self.runs, uuid4().hex)

    def replicate(self) -> None:
        """What the topic has, in the commit log and in the collection."""
        self.capture()
        deliver_here(self.opened, "objects")

    def offsets(self) -> dict[int, tuple[int, int]]:
        """The first and the next offset of each partition of the topic."""
        with PartitionReader(self.runs.connections.kafka, "tests", 30) as reader:
            return {number: reader.offsets(self.agents.name, number) for number in range(self.partitions)}

    def forget_all(self) -> None:
        """Remove everything that the topic has, as retention does."""
        self.forget({number: end for number, (_, end) in self.offsets().items()})

    def forget(self, ends: dict[int, int]) -> None:
        """Remove what the topic has below these offsets, as retention does."""
        from kafka import KafkaAdminClient
        from kafka.structs import TopicPartition

        with KafkaAdminClient(**self.runs.connections.kafka.client_options()) as admin:
            admin.delete_records({TopicPartition(self.agents.name, n): end for n, end in ends.items()})


@contextmanager
def served_pipeline(
    services: Any, folder: Path, partitions: int = 4, **section: Any
) -> Iterator[ServedPipeline]:
    """A pipeline whose topic and tables are removed afterwards. ``section``: its section ``agent``."""
    with (
        agent_pipeline(services, folder, partitions, **section) as agents,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TIDEMARK_PIPELINES", agents.environment["TIDEMARK_PIPELINES"])
        connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
        yield ServedPipeline(agents, LogRuns(agents.name, folder, connections), partitions)
        keyspace = agents.name.replace("-", "_")
        connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)
