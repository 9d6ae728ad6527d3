"""OpLog agents in processes of their own, on the shared services: started, asked, killed."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil
from confluent_kafka import Consumer, KafkaError, TopicPartition
from tests.support.waiting import wait_until

from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.embedded.ports import LOOPBACK, free_port
from tidemark.kafka.admin import delete_topic
from tidemark.log.state.control import LogControl
from tidemark.settings import ROOT

PIPELINE = """
name: {name}
source: {{kafka: {{topics: ["{name}"], format: oplog, create: {{partitions: {partitions}}}}}}}
schedule: null
agent: {agent}
writers:
  - {{name: objects, kind: collection, envelope: oplog, keyspace: {keyspace}}}
"""
JSON_HEADERS = {"content-type": "application/json"}
USUAL = ("-m", "tidemark.cli.main")
IMPATIENT = ("-c", "from tests.support.services.impatient_agent import main; main()")
"""An agent that waits seconds where others wait half a minute; see there."""


def operation(id_: str, **fields: Any) -> bytes:
    """An operation as JSON."""
    return json.dumps({"event": "update", "parents": ["u/1"], "type": "video", "id": id_, **fields}).encode()


def keyspace_of(pipeline: str) -> str:
    """The keyspace of a pipeline's collection."""
    return pipeline.replace("-", "_")


@dataclass
class StartedAgent:
    """An agent that runs in a process."""

    name: str
    port: int
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.url}/status", timeout=60).json()
        return found

    @property
    def resident(self) -> int:
        """The bytes of memory that it has."""
        return psutil.Process(self.process.pid).memory_info().rss

    def post(self, id_: str) -> int:
        """Send an operation by HTTP; the status of the answer."""
        return httpx.post(self.url, content=operation(id_), headers=JSON_HEADERS, timeout=120).status_code

    def send_datagrams(self, *datagrams: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for datagram in datagrams:
                sender.sendto(datagram, ("127.0.0.1", self.port))

    def connect(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        made.settimeout(120)
        return made

    def kill(self) -> None:
        """As ``kill -9``."""
        self.process.kill()
        self.process.wait(60)

    def stop(self) -> int:
        """Ask it to stop; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@dataclass(frozen=True)
class AgentPipeline:
    """A pipeline with an agent, whose file is in a folder of the test's own."""

    services: Any
    name: str
    folder: Path

    @contextmanager
    def agent(
        self, *options: str, program: Sequence[str] = USUAL, port: int = 0, **environ: str
    ) -> Iterator[StartedAgent]:
        """An agent of the pipeline until the end of the block. It has answered its first request."""
        port, log = port or free_port(), self.folder / f"agent-{uuid4().hex[:6]}.log"
        command = [sys.executable, *program, "oplog", "serve", self.name]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--listen", f"127.0.0.1:{port}", *options],
                cwd=ROOT,
                env={**os.environ, **self.environment, **environ},
                stdout=output,
                stderr=output,
            )
        agent = StartedAgent(self.name, port, process, log)
        try:
            wait_until(lambda: self._answers(agent), 120, f"the agent's answer; {log.read_text()}")
            yield agent
        finally:
            if process.poll() is None:
                agent.kill()

    @property
    def environment(self) -> dict[str, str]:
        known = os.environ.get("TIDEMARK_PIPELINES", "")
        return {"TIDEMARK_PIPELINES": f"{known}:{self.folder / 'pipelines'}"}

    def _answers(self, agent: StartedAgent) -> bool:
        assert agent.process.poll() is None, agent.log.read_text()
        return b" at http://" in agent.log.read_bytes()

    def records(self) -> list[Any]:
        """Every record of the topic."""
        options = {"group.id": uuid4().hex, "enable.partition.eof": True}
        consumer = Consumer({**self.services.kafka.librdkafka_options(), **options})
        try:
            partitions = consumer.list_topics(self.name, 30).topics[self.name].partitions
            consumer.assign([TopicPartition(self.name, number, 0) for number in partitions])
            found, ends = [], 0
            while ends < len(partitions):
                for message in consumer.consume(1_000, 1):
                    if message.error() is None:
                        found.append(message)
                    else:
                        assert message.error().code() == KafkaError._PARTITION_EOF
                        ends += 1
            return found
        finally:
            consumer.close()

    def ids(self) -> list[str]:
        """The ids of the objects of all records."""
        return [message.key().decode().partition("/")[2] for message in self.records()]


@contextmanager
def agent_pipeline(
    services: Any, folder: Path, partitions: int = 4, **section: Any
) -> Iterator[AgentPipeline]:
    """A pipeline whose topic is removed afterwards."""
    name = f"agent-{uuid4().hex[:12]}"
    section = {"listen": f"{LOOPBACK}:{free_port()}", **section}  # no other file's, also not the demo's
    text = PIPELINE.format(
        name=name, partitions=partitions, agent=json.dumps(section), keyspace=keyspace_of(name)
    )
    (folder / "pipelines").mkdir(exist_ok=True)
    (folder / "pipelines" / f"{name}.yaml").write_text(text)
    try:
        yield AgentPipeline(services, name, folder)
    finally:
        delete_topic(services.kafka, name)
        connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
        LogControl(open_control(connections), name).forget_bindings()
        connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {keyspace_of(name)}", timeout=60)
