"""Rebuilds: the build of a rendition beside ordinary delivery of the same log, its memory, and its neighbour.

    python bench/rebuild.py [--messages 5000000] [--kind files]

Starts Cassandra of its own, for the control plane and for the collection. Every kind of writer is measured
by itself: ``files`` shows what the machinery of renditions costs, ``collection`` what a busy target does.
Ordinary delivery and the build are ``spark_apps/deliver.py``, the build with ``--consumer W.r2
--until-caught-up``. Their rates are those between their first and their last commit, so that starting Spark
is left out. Memory is the most that one Python worker takes, at a fifth of the messages and at all of them.
Latency is the time from a published binding of 1,000 messages until the active rendition has committed it,
delivered by this process: alone, then beside a build. Prints tables for bench/README.md.
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from journal_job import Watch  # isort: skip
from rebuild_log import GrowingLog  # isort: skip
from services import own_services  # isort: skip
import psutil

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.renditions.endings import Abandoning
from tidemark.app.renditions.next_rendition import NextRendition
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.consensus.lightweight import create_schema
from tidemark.delivery.binding_steps import write_parts_at_once
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.writer_state import OffsetEntryKind
from tidemark.embedded.jars.class_archive import driver_java_options
from tidemark.embedded.jars.fetch import ensure_jars
from tidemark.embedded.ports import LOOPBACK
from tidemark.log.files.parquet import LogFolder
from tidemark.log.state.control import LogControl
from tidemark.pipeline.loader import find_pipeline
from tidemark.settings import ROOT, Settings

WRITER, BINDINGS = "orders", 20
SMALL, ROUNDS = 1_000, 30
COMMITS = 10**6
PIPELINE = """
name: {name}
source: {{kafka: {{topics: ["orders"], format: json}}}}
schedule: null
limits: {{max_records_per_run: 1000000000}}
log: {{path: "{folder}/{name}/log"}}
writers:
  - {writer}
"""
WRITERS = {
    "files": '{{name: orders, kind: files, path: "{folder}/{name}/orders"}}',
    "collection": "{{name: orders, kind: collection, keyspace: {keyspace}, envelope: upsert, "
    "key: {{id: text}}, columns: {{owner: text, total: decimal, lines: int, note: text}}}}",
}


@dataclass(frozen=True)
class Ran:
    """One run of the application: messages a second between its first and last commit, and its memory."""

    rate: float
    peak: int


class Rebuilt:
    """A pipeline with a log of a number of bindings, each with a number of messages."""

    def __init__(
        self, name: str, kind: str, folder: Path, connections: Connections, bindings: int, messages: int
    ) -> None:
        (folder / "pipelines").mkdir(exist_ok=True)
        writer = WRITERS[kind].format(name=name, folder=folder, keyspace=name)
        text = PIPELINE.format(name=name, folder=folder, writer=writer)
        (folder / "pipelines" / f"{name}.yaml").write_text(text)
        os.environ["TIDEMARK_PIPELINES"] = str(folder / "pipelines")
        self.root, self.name, self.connections = folder, name, connections
        self.opened = OpenPipeline(find_pipeline(name), connections)
        self.control = LogControl(self.opened.consensus, name)
        self.log = GrowingLog(self.control, LogFolder(name, self.opened.pipeline.log.path))
        for _ in range(bindings):
            self.log.add(messages)

    def deliver(self) -> Ran:
        """Ordinary delivery of everything."""
        return self._ended(WRITER, "r1", [])

    def build(self, number: int) -> Ran:
        """The build of a rendition."""
        return self._ended(f"{WRITER}.r{number}", f"r{number}", self._arguments(number))

    @contextmanager
    def building(self, number: int) -> Iterator[Callable[[], bool]]:
        """A build in the background, from its first commit until the block ends; the function says whether it
        goes on."""
        process = self._started(f"r{number}", self._arguments(number))
        try:
            while not self._commits(f"{WRITER}.r{number}"):
                if process.poll() is not None:
                    sys.exit(f"the build ended early:\n{self._said(f'r{number}')}")
                time.sleep(0.2)
            yield lambda: process.poll() is None
        finally:
            process.terminate()
            process.wait()

    def declare(self) -> int:
        """The next rendition, with the same settings."""
        renditions = WriterRenditions.of(self.opened, WRITER)
        return NextRendition(renditions).register(renditions.signature("bench", "a measurement")).number

    def give_up(self, number: int) -> None:
        """Abandon a rendition, so that a further one is not the same."""
        renditions = WriterRenditions.of(self.opened, WRITER)
        Abandoning(renditions, number).carry_out(renditions.signature("bench", "a measurement"))

    def latency(self) -> float:
        """Publish a small binding; the seconds until the active rendition has it."""
        binding = self.log.add(SMALL)
        writer, positions = self.opened.writer(WRITER), self.opened.positions
        began = time.monotonic()
        log = PublishedLog.open(self.control, self.opened.pipeline.log.path)
        reload = partial(positions.load, writer.name)
        done = deliver_to(writer, log, positions, "bench", write_parts_at_once, limit=10**9, reload=reload)
        assert done.position == binding.end, done
        return time.monotonic() - began

    def _ended(self, consumer: str, run: str, further: list[str]) -> Ran:
        process = self._started(run, further)
        watch = Watch(psutil.Process(process.pid))
        code, peak = process.wait(), watch.stop()
        if code:
            sys.exit(f"deliver failed:\n{self._said(run)}")
        commits = self._commits(consumer)
        (first, began), (last, ended) = commits[0], commits[-1]
        return Ran((last - first) / (ended - began) * 1e6, peak)

    def _commits(self, consumer: str) -> list[tuple[int, int]]:
        """Positions, and when they were committed (µs)."""
        if self.opened.positions.load(consumer) is None:
            return []
        entries = self.opened.positions.history(consumer, COMMITS)
        return [(one.position, one.at) for one in entries if one.kind is OffsetEntryKind.COMMIT]

    def _arguments(self, number: int) -> list[str]:
        return ["--consumer", f"{WRITER}.r{number}", "--until-caught-up"]

    def _started(self, run: str, further: list[str]) -> "subprocess.Popen[bytes]":
        settings = Settings.read()
        path = self.root / f"{self.name}-{run}-connections.json"
        self.connections.write(path)
        jars = ",".join(str(jar) for jar in ensure_jars(settings, only="spark").spark)
        options = ["--master", "local[2]", "--jars", jars]
        options += ["--driver-java-options", driver_java_options(settings), "pyspark-shell"]
        environ = {**os.environ, "SPARK_LOCAL_IP": LOOPBACK, "PYSPARK_PYTHON": sys.executable}
        environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(options)
        command = [sys.executable, str(ROOT / "spark_apps" / "deliver.py"), "--pipeline", self.name]
        command += ["--connections", str(path), "--holder", run, *further]
        command += ["--summary", str(self.root / f"{self.name}-{run}.json")]
        with (self.root / f"{self.name}-{run}.log").open("w") as log:
            return subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)

    def _said(self, run: str) -> str:
        return (self.root / f"{self.name}-{run}.log").read_text()[-3000:]


def measure(kind: str, folder: Path, connections: Connections, messages: int) -> None:
    """Both sizes, then the latencies beside a build of the larger one."""
    small = Rebuilt(f"fifth_{kind}", kind, folder, connections, BINDINGS // 5, messages // BINDINGS)
    small.deliver()
    less = small.build(small.declare())
    large = Rebuilt(f"whole_{kind}", kind, folder, connections, BINDINGS, messages // BINDINGS)
    ordinary = large.deliver()
    first = large.declare()
    built = large.build(first)
    large.give_up(first)
    alone = [large.latency() for _ in range(ROUNDS)]
    second, beside = large.declare(), list[float]()
    with large.building(second) as goes_on:
        while goes_on() and len(beside) < ROUNDS:
            beside.append(large.latency())

    print(f"\n| {messages:,} messages, kind `{kind}` | messages/s | of ordinary |\n|---|---|---|")
    print(f"| ordinary delivery | {ordinary.rate:,.0f} | |")
    print(f"| build of a rendition | {built.rate:,.0f} | {built.rate / ordinary.rate:.2f} |")
    print("\n| the most of one Python worker | messages | MB | of the first |\n|---|---|---|---|")
    for count, ran in ((messages // 5, less), (messages, built)):
        print(f"| build | {count:,} | {ran.peak / 2**20:.0f} | {ran.peak / less.peak:.2f} |")
    print(f"\n| bindings of {SMALL:,} messages to the active rendition | number | p50 ms | most ms | ratio |")
    print("|---|---|---|---|---|")
    base = statistics.median(alone)
    for way, seconds in (("alone", alone), ("beside a build", beside)):
        p50, most = statistics.median(seconds), max(seconds)
        print(f"| {way} | {len(seconds)} | {p50 * 1e3:.0f} | {most * 1e3:.0f} | {p50 / base:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=5_000_000, help="messages of the log")
    parser.add_argument("--kind", choices=list(WRITERS), action="append", help="only this; may be repeated")
    arguments = parser.parse_args()
    with own_services(services=("cassandra",)) as own, TemporaryDirectory() as folder:
        cassandra = CassandraConnection(hosts=(LOOPBACK,), port=own.settings.cassandra_port)
        connections = Connections(
            kafka=KafkaConnection(servers=f"{LOOPBACK}:{own.settings.kafka_port}"),
            cassandra={"cassandra_default": cassandra},
        )
        create_schema(connect(connections.control), {"class": "SimpleStrategy", "replication_factor": "1"})
        for kind in arguments.kind or WRITERS:
            measure(kind, Path(folder), connections, arguments.messages)


if __name__ == "__main__":
    main()
