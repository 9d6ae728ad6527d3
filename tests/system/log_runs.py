"""One pipeline's runs without Airflow: the same steps, as processes that a test can kill."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaConsumer
from kafka.structs import TopicPartition

from tidemark.connections import Connections
from tidemark.delivery.pipeline import Pipeline
from tidemark.delivery.pipeline_file import find_pipeline
from tidemark.delivery.replicate import open_control
from tidemark.embedded.class_archive import driver_java_options
from tidemark.embedded.ivy import pyspark_folder
from tidemark.embedded.jars import ensure_jars
from tidemark.faults import VARIABLE, FaultPoint
from tidemark.log.binding import Binding
from tidemark.log.capture import capture
from tidemark.log.captured import Captured
from tidemark.log.control import LogControl
from tidemark.log.files import LOG_SCHEMA, LogFolder
from tidemark.log.publish import publish
from tidemark.settings import ROOT, Settings

STEP = """
import sys
from pathlib import Path
from tidemark.cassandra.session import disconnect_all
from tidemark.connections import Connections
from tidemark.delivery.pipeline_file import find_pipeline
from tidemark.delivery.replicate import audit_run, begin_run, publish_run
step, name, connections, argument = sys.argv[1:]
pipeline, known = find_pipeline(name), Connections.load(Path(connections))
if step == "bind":
    print(begin_run(pipeline, known, argument, retry=True).t)
elif step == "audit":
    audit_run(pipeline, known, int(argument), show=print)
else:
    print(publish_run(pipeline, known, int(argument)).end)
disconnect_all()
"""
PIPELINE = """
name: {name}
source:
  kafka: {{{source}}}
schedule: null
writers:
  - {{name: archive, kind: files, path: "{folder}/archive/{name}"}}
log: {{path: "{folder}/log/{name}"}}
expectations: {expectations}
"""


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    out: str
    err: str
    summary: dict[str, Any]


@dataclass(frozen=True)
class LogRuns:
    """A declared pipeline and its log."""

    name: str
    root: Path
    connections: Connections

    @property
    def pipeline(self) -> Pipeline:
        return find_pipeline(self.name)

    @property
    def control(self) -> LogControl:
        return LogControl(open_control(self.connections), self.name)

    @property
    def folder(self) -> LogFolder:
        return LogFolder(self.name, self.pipeline.log.path)

    def replicate(self, run_id: str) -> Binding | None:
        """One whole run up to publish; its binding."""
        t = self.bind(run_id).out.strip()
        if t == "None":
            return None
        for ended in (self.capture(int(t)), self.step("audit", t), self.step("publish", t)):
            assert ended.code == 0, ended
        return self.control.binding(int(t))

    def bind(self, run_id: str, fault: FaultPoint | None = None) -> Ended:
        return self.step("bind", run_id, fault)

    def step(self, step: str, argument: str, fault: FaultPoint | None = None) -> Ended:
        return self._run([sys.executable, "-c", STEP, step, self.name], [argument], fault)

    def capture(self, t: int, fault: FaultPoint | None = None) -> Ended:
        """The application, as the operator submits it."""
        settings = Settings.read()
        jars = ",".join(str(jar) for jar in ensure_jars(settings, only="spark").spark)
        quiet = f"-Dlog4j2.configurationFile=file:{ROOT}/include/tidemark/spark/log4j2.properties"
        options = f"{driver_java_options(settings)} {quiet}"
        command = [str(pyspark_folder() / "bin" / "spark-submit"), "--master", "local[2]", "--jars", jars]
        command += ["--driver-java-options", options, str(ROOT / "spark_apps" / "capture.py")]
        return self._run([*command, "--pipeline", self.name, "--connections"], ["--t", str(t)], fault)

    def command(self, *arguments: str, fault: FaultPoint | None = None) -> Ended:
        """``tidemark``, as a person calls it."""
        whole = [str(Path(sys.executable).parent / "tidemark"), *arguments]
        done = subprocess.run(whole, env=self._environ(fault), capture_output=True, text=True)
        return Ended(done.returncode, done.stdout, done.stderr, {})

    def accept(self, reason: str, fault: FaultPoint | None = None) -> Ended:
        return self.command("log", "accept", self.name, "--reason", reason, "--execute", fault=fault)

    def _environ(self, fault: FaultPoint | None) -> dict[str, str]:
        environ = {**os.environ, "SPARK_HOME": str(pyspark_folder()), "PYSPARK_PYTHON": sys.executable}
        environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "TIDEMARK_PIPELINES": str(self.root / "pipelines")}
        return environ | ({VARIABLE: fault} if fault else {})

    def _run(self, command: list[str], arguments: list[str], fault: FaultPoint | None) -> Ended:
        environ = self._environ(fault)
        with tempfile.TemporaryDirectory() as folder:
            connections, summary = Path(folder, "connections.json"), Path(folder, "summary.json")
            self.connections.write(connections)
            further = ["--summary", str(summary)] if "--pipeline" in command else []
            whole = [*command, str(connections), *arguments, *further]
            done = subprocess.run(whole, env=environ, capture_output=True, text=True)
            said = json.loads(summary.read_text()) if summary.exists() else {}
        return Ended(done.returncode, done.stdout, done.stderr, said)


def declare_log(
    root: Path,
    name: str,
    connections: Connections,
    patch: pytest.MonkeyPatch,
    source: str | None = None,
    expectations: str = "default",
) -> LogRuns:
    """A pipeline of its own, known to this test and its processes only."""
    (root / "pipelines").mkdir(exist_ok=True)
    declared = PIPELINE.format(
        name=name, folder=root, source=source or f'topics: ["{name}"], format: raw', expectations=expectations
    )
    (root / "pipelines" / f"{name}.yaml").write_text(declared)
    patch.setenv("TIDEMARK_PIPELINES", str(root / "pipelines"))
    return LogRuns(name, root, connections)


def consumed(runs: LogRuns, binding: Binding) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The messages of a binding as another client reads them from Kafka: what the log must hold."""
    options = {**runs.connections.kafka.client_options(), "isolation_level": "read_committed"}
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    with KafkaConsumer(**options, auto_offset_reset="earliest") as consumer:
        for s in binding.slices:
            place = TopicPartition(s.topic, s.partition)
            consumer.assign([place])
            consumer.seek(place, s.lower)
            while consumer.position(place) < s.upper:
                for record in consumer.poll(1000).get(place, []):
                    if record.offset < s.upper:
                        id_ = binding.id_of(s.topic, s.partition, record.offset)
                        found.setdefault((s.topic, s.partition), []).append(
                            {
                                "id": id_,
                                "t": binding.t,
                                "write_time": binding.write_time(id_),
                                "topic": s.topic,
                                "partition": s.partition,
                                "offset": record.offset,
                                "timestamp": record.timestamp,
                                "timestamp_type": record.timestamp_type,
                                "key": record.key,
                                "value": record.value,
                                "headers": [{"name": n, "value": v} for n, v in record.headers] or None,
                                "namespace": s.topic,
                            }
                        )
    return found


def capture_here(runs: LogRuns, binding: Binding, folder: LogFolder) -> Captured:
    """A capture without Spark, from what another client reads: the same bytes, in a tenth of the time."""
    found = consumed(runs, binding)
    written = [
        folder.write_file(binding, s, [pa.RecordBatch.from_pylist(rows, schema=LOG_SCHEMA)])
        for s in binding.slices
        if (rows := found.get((s.topic, s.partition)))
    ]
    return Captured(binding.t, tuple(one for one in written if one is not None))


def publish_here(runs: LogRuns, run_id: str) -> Binding:
    """A whole run without Spark, for tests that are about what comes next."""
    binding = runs.control.binding(int(runs.bind(run_id).out))
    capture(runs.folder, binding.t, lambda: capture_here(runs, binding, runs.folder), lambda _: [])
    publish(runs.control, runs.folder, binding, runs.pipeline.log.segment_bytes, binding.t)
    return binding


def expected_digests(runs: LogRuns, binding: Binding, folder: Path) -> dict[str, str]:
    """Path and digest of every file that a capture nobody disturbed would have written."""
    captured = capture_here(runs, binding, LogFolder(runs.name, str(folder)))
    return {file.path: file.digest for file in captured.files}
