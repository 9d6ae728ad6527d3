"""A pipeline that is followed by a process of its own, which a test can stop, kill or let die at a point."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.services.journal_runs import SEGMENT_SIZE, WRITER, JournalRuns, given_topic
from tests.support.services.log_runs import LogRuns, spark_environ
from tests.support.waiting import SLOWEST_MACHINE, wait_until

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.replicate import RunSource, begin_run_at
from tidemark.cassandra.session import connect, server_time
from tidemark.clock import wall_clock
from tidemark.connections import Connections
from tidemark.consensus.control_plane import look_at_control, open_control
from tidemark.faults import VARIABLE, FaultPoint
from tidemark.log.bindings.door import Bindings
from tidemark.log.capture import capture
from tidemark.log.kafka_records import RecordReader
from tidemark.log.model.audit_result import Judgement
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.log.publish import publish
from tidemark.log.source import read_available, read_still_available
from tidemark.log.state.followed import Followed, read_followed
from tidemark.pipeline.model import source_topics
from tidemark.settings import ROOT

PIPELINE = """
name: {name}
source:
  kafka: {{topics: ["{topic}"]}}
schedule: null
follow: {{every: 1s, for: 1h}}
log: {{path: "{folder}/log/{name}", segment_bytes: 50KB, compaction: {{policy: journal, min_lag: 2s}}}}
writers:
  - {{name: {writer}, kind: journal, keyspace: {keyspace}, segment_size: {size}}}
{further}
"""


@dataclass
class FollowProcess:
    """One attempt at a run."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return found

    @property
    def output(self) -> str:
        return (self.folder / "follow.log").read_text()

    def ended(self, seconds: float = 120) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(seconds * SLOWEST_MACHINE)

    def stop(self) -> dict[str, Any]:
        """SIGTERM, as Airflow sends it; the summary of the run."""
        self.process.terminate()
        assert self.ended() == 0, self.output[-3_000:]
        return self.summary

    def kill(self) -> None:
        """``kill -9``."""
        self.process.kill()
        self.process.wait()


@dataclass
class FollowRuns:
    """One pipeline that is followed into a keyspace of its own."""

    journal: JournalRuns
    folder: Path
    processes: list[FollowProcess] = field(default_factory=list)

    @property
    def runs(self) -> LogRuns:
        return self.journal.runs

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(self.runs.pipeline, self.runs.connections)

    @property
    def followed(self) -> Followed | None:
        return read_followed(look_at_control(self.runs.connections), self.runs.name)

    def start(self, run_id: str = "run-1", fault: FaultPoint | None = None) -> FollowProcess:
        """Start another attempt, which may die at a point."""
        folder = self.folder / f"attempt-{len(self.processes)}"
        folder.mkdir()
        self.runs.connections.write(folder / "connections.json")
        command = [sys.executable, str(ROOT / "spark_apps" / "follow.py"), "--pipeline", self.runs.name]
        command += ["--connections", str(folder / "connections.json"), "--run-id", run_id]
        command += ["--summary", str(folder / "summary.json")]
        environ = {**os.environ, **spark_environ(), **({VARIABLE: fault} if fault else {})}
        with (folder / "follow.log").open("wb") as output:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environ, stdout=output, stderr=output, start_new_session=True
            )
        self.processes.append(FollowProcess(process, folder))
        return self.processes[-1]

    def following(self, run_id: str = "run-1") -> FollowProcess:
        """An attempt that repeats rounds already."""
        attempt, before = self.start(run_id), self.followed

        def has_begun() -> bool:
            assert attempt.process.poll() is None, attempt.output[-3_000:]
            now = self.followed
            is_new = now is not None and (before is None or now.since > before.since)
            return is_new and now is not None and now.rounds > 0

        wait_until(has_begun, 120, "the first round")
        return attempt

    def wait_for_rounds(self, count: int) -> None:
        """Wait until so many more rounds have ended, as far as the control plane knows."""
        began = self.followed
        assert began is not None
        wait_until(
            lambda: (now := self.followed) is not None and now.rounds >= began.rounds + count,
            60 + 5 * count,
            f"{count} rounds",
        )

    def wait_for(self, pointers: dict[int, int], seconds: float = 120) -> None:
        """Wait until the tables have everything up to these offsets."""
        wait_until(lambda: self._pointers() == pointers, seconds, f"pointers at {pointers}")

    def _pointers(self) -> dict[int, int]:
        keyspace = self.journal.session.cluster.metadata.keyspaces.get(self.journal.keyspace)
        return self.journal.pointers if keyspace and "pointer2" in keyspace.tables else {}

    def close(self) -> None:
        """End what a failed test has left."""
        for one in self.processes:
            if one.process.poll() is None:
                os.killpg(one.process.pid, signal.SIGKILL)
                one.process.wait()


def publish_beside(runs: LogRuns, run_id: str) -> None:
    """A run of replicate up to publish, without Spark: as a round captures, so that the bytes are the same.

    A round may be quicker at any point: then there is nothing left to do.
    """
    pipeline, connections = runs.pipeline, runs.connections
    topics = source_topics(pipeline)
    source = RunSource(
        open_control(connections),
        lambda: read_available(topics, connections.kafka),
        lambda: server_time(connect(connections.control)),
        in_process=pipeline.limits.max_records_in_process,
    )
    plan = begin_run_at(source, pipeline, run_id, retry=True)
    if plan.t is None:
        return
    control, folder = runs.control, runs.folder
    binding = Bindings(control, folder).at(plan.t)
    engine = RecordsEngine(connections, topics.isolation)
    still_available = partial(read_still_available, topics, connections.kafka)
    try:
        capture(control, folder, binding, engine, still_available, wall_clock())
        publish(control, folder, binding, pipeline.log.segment_bytes, wall_clock())
    except Exception:
        if control.log_head().t < binding.t:
            raise


@dataclass(frozen=True)
class RecordsEngine:
    """A capture's engine as rounds have it, without the audit: Great Expectations is slow to load."""

    connections: Connections
    isolation: str

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        """See ``CaptureEngine``."""
        with closing(RecordReader(self.connections.kafka, self.isolation)) as reader:
            return reader.write_records(binding, slices, area)

    def audit(self, captured: Captured) -> Sequence[Judgement]:
        """See ``CaptureEngine``."""
        return ()


@contextmanager
def given_followed(
    root: Path, connections: Connections, name: str, patch: pytest.MonkeyPatch, further: str = ""
) -> Iterator[FollowRuns]:
    """A pipeline that may be followed, its topic and its keyspace; all of them are gone afterwards."""
    keyspace = name.replace("-", "_")
    (root / "pipelines").mkdir(exist_ok=True)
    declared = PIPELINE.format(
        name=name,
        topic=name,
        folder=root,
        writer=WRITER,
        keyspace=keyspace,
        size=SEGMENT_SIZE,
        further=further.format(folder=root, name=name),
    )
    (root / "pipelines" / f"{name}.yaml").write_text(declared)
    patch.setenv("TIDEMARK_PIPELINES", str(root / "pipelines"))
    journal = JournalRuns(LogRuns(name, root, connections), name, keyspace)
    with given_topic(connections, name):
        one = FollowRuns(journal, root)
        try:
            yield one
        finally:
            one.close()
            journal.session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)
