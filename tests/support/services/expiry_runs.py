"""Runs over expired entities on real Kafka and Cassandra, in this process or in one that a test can kill.

No Spark and no Airflow: a process starts in a second or two.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.purge import open_run
from tidemark.connections import Connections
from tidemark.expiry.purge import Sender
from tidemark.expiry.run import ExpiryRun
from tidemark.expiry.run_record import Intended
from tidemark.faults import VARIABLE, FaultPoint
from tidemark.journal.action import Action, append
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata
from tidemark.pipeline.loader import find_pipeline
from tidemark.settings import ROOT

WRITER = "cassandra"
STEP = "import sys; from tests.support.services.expiry_runs import take_step; take_step(*sys.argv[1:])"
PIPELINE = """
name: {name}
source:
  kafka: {{topics: [{topics}]}}
schedule: null
log: {{path: "{folder}/log", segment_bytes: 1}}
writers:
  - {{name: cassandra, kind: journal, keyspace: {keyspace}}}
expiry: {{schedule: null, timezone: {zone}}}
"""
"""Every file closes a segment, so that compaction reaches all but the last."""
SECOND, DAY = 1_000_000_000, timedelta(days=1)


def day(back: int) -> date:
    """The date so many days ago, in UTC."""
    return datetime.now(UTC).date() - back * DAY


def expired(key: str, back: int = 1, seq_nr: int = 1) -> Action:
    """An append whose entity expired so many days ago."""
    return appended(key, ExpireAfter(-back, "day"), seq_nr)


def expiring_at(key: str, moment: datetime) -> Action:
    """An append whose entity expires at a moment, give or take what it takes to get there."""
    seconds = int((moment - datetime.now(UTC)).total_seconds())
    return appended(key, ExpireAfter(seconds, "second"))


def appended(key: str, expires: ExpireAfter | None = None, seq_nr: int = 1) -> Action:
    event = EncodedEvent(seq_nr, (), "json", f'"payload of {key}"')
    return append(key, 1, Events((event,), PayloadMetadata(expires)))


@dataclass(frozen=True)
class Interrupted:
    """A sender before which something happens: between the last look and the purges."""

    sender: Sender
    happen: Callable[[], object]

    def send(self, purges: Sequence[Intended]) -> Sequence[int]:
        """See ``Sender.send``."""
        self.happen()
        return self.sender.send(purges)


@dataclass(frozen=True)
class ExpiryRuns:
    """One pipeline whose entities expire."""

    name: str
    connections: Connections

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(find_pipeline(self.name), self.connections)

    def run(self, name: str = "run-1", happen: Callable[[], object] | None = None) -> ExpiryRun:
        run = open_run(self.opened, WRITER, name)
        return replace(run, sender=Interrupted(run.sender, happen)) if happen else run

    def plan(self, *days: date, name: str = "run-1", happen: Callable[[], object] | None = None) -> ExpiryRun:
        """A run with its plan."""
        run = self.run(name, happen)
        run.open_days(days)
        run.plan(days, run.find(days), 1_000)
        return run

    def step(self, step: str, fault: FaultPoint, days: Sequence[date]) -> int:
        """A step in a process that dies at a point; its exit code."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "connections.json")
            self.connections.write(path)
            command = [sys.executable, "-c", STEP, step, self.name, str(path), ",".join(map(str, days))]
            done = subprocess.run(
                command, cwd=ROOT, env={**os.environ, VARIABLE: fault}, capture_output=True, text=True
            )
        assert done.returncode in (0, -9), done.stderr
        return done.returncode


def take_step(step: str, name: str, connections: str, days: str) -> None:
    """One step of a run as its task does it."""
    runs = ExpiryRuns(name, Connections.load(Path(connections)))
    asked = [date.fromisoformat(one) for one in days.split(",")]
    if step == "plan":
        runs.plan(*asked)
    elif step == "purge":
        runs.run().purge()
    else:
        runs.run().report(asked)


def purges_of(messages: Sequence[Any]) -> list[str]:
    """The keys of purges, in their order."""
    said = ((message.key.decode(), dict(message.headers)["journal.action"]) for message in messages)
    return [key for key, action in said if action.startswith(b'{"purge"')]
