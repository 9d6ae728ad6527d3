"""One pipeline's runs without Airflow: the same steps in this process, or in one that a test can kill."""

import importlib.util
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from kafka import KafkaConsumer
from kafka.structs import TopicPartition
from pyspark.sql import SparkSession
from tests.support.log_samples import RowsEngine
from tests.support.waiting import wait_until

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.replicate import audit_run, begin_run, publish_run
from tidemark.cli.main import main as tidemark
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.embedded.jars.class_archive import driver_java_options
from tidemark.embedded.jars.fetch import ensure_jars
from tidemark.errors import TidemarkError
from tidemark.faults import PAUSE, VARIABLE, FaultPoint
from tidemark.log.bindings.door import Bindings
from tidemark.log.capture import capture, write_files
from tidemark.log.expectations import Suite
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.publish import publish
from tidemark.log.source import read_still_available
from tidemark.log.state.control import LogControl
from tidemark.pipeline.loader import find_pipeline
from tidemark.pipeline.model import Pipeline, source_topics
from tidemark.settings import ROOT, Settings
from tidemark.spark.jobs.capture import SparkCapture

STEP = "import sys; from tests.support.services.log_runs import take_step; take_step(*sys.argv[1:])"
PIPELINE = """
name: {name}
source:
  kafka: {{{source}}}
schedule: null
writers:
  - {writer}
log: {{path: "{folder}/log/{name}"}}
expectations: {expectations}
"""


@dataclass(frozen=True)
class Ended:
    """A process that has ended, or would have."""

    code: int
    out: str
    err: str
    summary: dict[str, Any] = field(default_factory=dict)


class Zombie(subprocess.Popen[bytes]):
    """A process that was left for dead."""

    def __init__(self, command: list[str], summary: Path, environ: dict[str, str]) -> None:
        super().__init__(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.summary = summary


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
        return Bindings(self.control).at(int(t))

    def bind(self, run_id: str, fault: FaultPoint | None = None) -> Ended:
        return self.step("bind", run_id, fault)

    def step(self, step: str, argument: str, fault: FaultPoint | None = None) -> Ended:
        with connections_file(self.connections) as connections:
            arguments = [step, self.name, str(connections), argument]
            if fault:
                return self._run([sys.executable, "-c", STEP, *arguments], fault)
            return ended_here(lambda: take_step(*arguments))

    def capture(self, t: int, fault: FaultPoint | None = None) -> Ended:
        """The application that captures."""
        return self._application("capture", ["--t", str(t)], fault)

    def deliver(self, holder: str, fault: FaultPoint | None = None, further: Sequence[str] = ()) -> Ended:
        """The application that delivers."""
        return self._application("deliver", ["--holder", holder, *further], fault)

    def verify(self, *arguments: str) -> Ended:
        """The application that verifies."""
        return self._application("verify", list(arguments), None)

    def compact_offsets(self, *arguments: str) -> Ended:
        """The application that compacts offset logs."""
        return self._application("compact_offsets", list(arguments), None)

    def find_expired(self, *arguments: str) -> Ended:
        """The application that finds expired entities."""
        return self._application("find_expired", list(arguments), None)

    @contextmanager
    def paused_delivery(self, holder: str, point: FaultPoint) -> Iterator["Zombie"]:
        """A delivery in a process of its own that stops itself at this point, until the test wakes it."""
        with connections_file(self.connections) as connections, tempfile.TemporaryDirectory() as folder:
            summary = Path(folder, "summary.json")
            command = [sys.executable, str(ROOT / "spark_apps" / "deliver.py"), "--pipeline", self.name]
            command += ["--connections", str(connections), "--holder", holder, "--summary", str(summary)]
            environ = {**os.environ, **spark_environ(), VARIABLE: f"{point}{PAUSE}"}
            zombie = Zombie(command, summary, environ)
            try:
                wait_until(
                    lambda: psutil.Process(zombie.pid).status() == psutil.STATUS_STOPPED, 120, "a pause"
                )
                yield zombie
            finally:
                zombie.kill()

    def _application(self, name: str, further: list[str], fault: FaultPoint | None) -> Ended:
        """One of Spark's applications; to be killed it gets a process of its own."""
        with connections_file(self.connections) as connections, tempfile.TemporaryDirectory() as folder:
            summary = Path(folder, "summary.json")
            arguments = ["--pipeline", self.name, "--connections", str(connections), *further]
            arguments += ["--summary", str(summary)]
            if fault:
                path = ROOT / "spark_apps" / f"{name}.py"
                ended = self._run([sys.executable, str(path), *arguments], fault)
            else:
                ended = ended_here(lambda: sys.exit(load_application(name).main(arguments)))
            return replace(ended, summary=json.loads(summary.read_text()) if summary.exists() else {})

    def command(self, *arguments: str, fault: FaultPoint | None = None) -> Ended:
        """``tidemark``, as a person calls it."""
        if fault:
            return self._run([str(Path(sys.executable).parent / "tidemark"), *arguments], fault)
        return ended_here(lambda: tidemark(arguments))

    def accept(self, reason: str, fault: FaultPoint | None = None) -> Ended:
        return self.command("log", "accept", self.name, "--reason", reason, "--execute", fault=fault)

    def _run(self, command: list[str], fault: FaultPoint) -> Ended:
        environ = {**os.environ, **spark_environ(), VARIABLE: fault}
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
        return Ended(done.returncode, done.stdout, done.stderr)


def take_step(step: str, name: str, connections: str, argument: str) -> None:
    """One step of a run as its task does it; prints what the next step needs."""
    pipeline, known = find_pipeline(name), Connections.load(Path(connections))
    if step == "bind":
        print(begin_run(pipeline, known, argument, retry=True).t)
    elif step == "audit":
        audit_run(pipeline, known, int(argument), show=print)
    elif step == "resume":
        # The same holder as of the deliveries: it need not wait for its own lease.
        resumed = OpenPipeline(pipeline, known).resume(argument, "run-1", print)
        assert resumed.gate is None, resumed
    elif step == "deliver":
        deliver_here(OpenPipeline(pipeline, known), argument)
    else:
        print(publish_run(pipeline, known, int(argument)).end)


def deliver_here(opened: OpenPipeline, writer: str) -> None:
    """A delivery without Spark: what is durable, and when, is the same, and a process starts in a second."""
    positions, built = opened.positions, opened.writer(writer)
    deliver_to(
        built,
        opened.log,
        positions,
        "run-1",
        write_parts_here,
        limit=opened.pipeline.limits.max_records_per_run,
        reload=lambda: positions.load(built.name),
    )


def ended_here(work: Callable[[], None]) -> Ended:
    """Work done in this process, with what it would have said as a process of its own."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")  # as in a process of its own, where they are not errors
        try:
            work()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        except TidemarkError as error:
            code = 1
            print(error, file=sys.stderr)
    return Ended(code, out.getvalue(), err.getvalue())


def spark_arguments() -> list[str]:
    """What the operator gives to spark-submit."""
    settings = Settings.read()
    jars = ",".join(str(jar) for jar in ensure_jars(settings, only="spark").spark)
    quiet = f"-Dlog4j2.configurationFile=file:{ROOT}/include/tidemark/spark/log4j2.properties"
    options = f"{driver_java_options(settings)} {quiet}"
    return ["--master", "local[2]", "--jars", jars, "--driver-java-options", options]


def spark_environ() -> dict[str, str]:
    """What lets Python start Spark as the operator does it."""
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": shlex.join([*spark_arguments(), "pyspark-shell"]),
    }


def load_application(name: str) -> Any:
    """An application as a module; Java is started by the first one and serves those that follow."""
    os.environ.update(spark_environ())
    path = ROOT / "spark_apps" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(f"{name}_application", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@contextmanager
def connections_file(connections: Connections) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "connections.json")
        connections.write(path)
        yield path


def declare_log(
    root: Path,
    name: str,
    connections: Connections,
    patch: pytest.MonkeyPatch,
    source: str | None = None,
    expectations: str = "default",
    writer: str = 'name: archive, kind: files, path: "{folder}/archive/{name}"',
) -> LogRuns:
    """A pipeline of its own, known to this test and its processes only."""
    (root / "pipelines").mkdir(exist_ok=True)
    declared = PIPELINE.format(
        name=name,
        folder=root,
        writer="{" + writer.format(name=name, folder=root) + "}",
        source=source or f'topics: ["{name}"], format: raw',
        expectations=expectations,
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


def publish_here(runs: LogRuns, run_id: str) -> Binding:
    """A whole run without Spark, for tests that are about what comes next."""
    t = begin_run(runs.pipeline, runs.connections, run_id, retry=True).t
    assert t is not None, "there was nothing new to bind"
    binding = Bindings(runs.control).at(t)
    # Read by another client than Spark's: the same messages, in a tenth of the time.
    found = consumed(runs, binding)

    def batches(_: Binding, s: Slice) -> list[pa.RecordBatch]:
        rows = found.get((s.topic, s.partition))
        return [pa.RecordBatch.from_pylist(rows, schema=LOG_SCHEMA)] if rows else []

    still_available = partial(read_still_available, source_topics(runs.pipeline), runs.connections.kafka)
    capture(runs.control, runs.folder, binding, RowsEngine(batches), still_available, binding.t)
    publish(runs.control, runs.folder, binding, runs.pipeline.log.segment_bytes, binding.t)
    return binding


def expected_digests(runs: LogRuns, binding: Binding, folder: Path) -> dict[str, str]:
    """Path and digest of every file that an undisturbed capture would have written."""
    load_application("capture")
    spark = SparkSession.builder.getOrCreate()
    try:
        to = LogFolder(runs.name, str(folder))
        engine = SparkCapture(lambda: spark, runs.connections.kafka, "read_committed", to, Suite())
        captured = write_files(to, binding, binding.slices, engine)
    finally:
        spark.stop()
    return {file.path: file.digest for file in captured.files}
