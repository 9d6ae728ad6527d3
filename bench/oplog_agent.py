"""The agent of the measurements: ``tidemark oplog serve`` in a process of its own, and what it costs."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tidemark.embedded.ports import LOOPBACK, free_port
from tidemark.settings import ROOT

PIPELINE_NAME = "bench"
TOPIC = "oplog"
WRITER = "objects"
KEYSPACE = "oplog_bench"
PIPELINE = f"""
name: {PIPELINE_NAME}
source:
  kafka: {{{{topics: [{TOPIC}], format: oplog}}}}
schedule: null
follow: {{{{every: 1s, for: 1h}}}}
log: {{{{path: "{{folder}}/log"}}}}
agent: {{{{limits: {{{{connections: 20_000}}}}}}}}
writers:
  - {{{{name: {WRITER}, kind: collection, keyspace: {KEYSPACE}, envelope: oplog}}}}
"""
"""For ``own_services``."""
STARTED_WITHIN, STOPPED_WITHIN = 90, 40


@dataclass(frozen=True)
class Cost:
    """What processes have used.

    Attributes:
        cpu: Seconds, user and system.
        memory: Bytes that only they use.
        files: Open files.
    """

    cpu: float
    memory: int
    files: int

    @classmethod
    def of(cls, processes: list[psutil.Process]) -> "Cost":
        """The cost of some processes together."""
        used = [each.cpu_times() for each in processes]
        return cls(
            sum(one.user + one.system for one in used),
            sum(each.memory_full_info().uss for each in processes),
            sum(each.num_fds() for each in processes),
        )


@dataclass(frozen=True)
class RunningAgent:
    """An agent that answers."""

    port: int
    process: psutil.Process

    @property
    def cost(self) -> Cost:
        """What it has used until now."""
        return Cost.of([self.process])

    def status(self) -> dict[str, Any]:
        """What ``/status`` says."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)
        try:
            connection.request("GET", "/status")
            found: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return found

    def settled(self) -> dict[str, Any]:
        """The status once nothing is on its way to Kafka any more."""
        deadline = time.monotonic() + 60
        while (found := self.status())["queue_size"] or found["events_in_flight"]:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found


@contextmanager
def running_agent(folder: Path, *options: str) -> Iterator[RunningAgent]:
    """An agent of the pipeline in the environment's folder. Its log is ``agent.log`` in ``folder``."""
    port, log = free_port(set()), folder / "agent.log"
    command = [sys.executable, "-m", "tidemark.cli.main", "oplog", "serve", PIPELINE_NAME]
    command += ["--listen", f"{LOOPBACK}:{port}", *options]
    with log.open("a") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, env=os.environ, text=True
        )
    agent = RunningAgent(port, psutil.Process(process.pid))
    try:
        assert process.stdout is not None
        if not process.stdout.readline():  # it says one line when it answers
            sys.exit(f"the agent does not start:\n{log.read_text()[-3000:]}")
        yield agent
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if code:
        sys.exit(f"the agent ended with {code}:\n{log.read_text()[-3000:]}")
