"""Follow: from an append to its pointer, at 500 appends a second over four partitions.

    python bench/follow.py [--minutes 10] [--rate 500] [--here]

Run by ``make bench``. Starts Kafka and Cassandra of its own (``--here``: uses those of the environment), the
``follow`` application in a process of its own, and a producer here. The load begins when the keyspace is made
and a first record is in it, which happens once in a pipeline's life. Latencies are measured from outside: the
time from the call that sends a record until ``pointer2`` has its offset. Prints p50 and p99 for each minute,
the application's memory and round time in the first and the last minute, and the files of the log at the end.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import psutil
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from journal_load import Load  # isort: skip
from services import own_services  # isort: skip
from tidemark.cassandra.session import connect, disconnect_all
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.consensus.control_plane import open_control
from tidemark.consensus.objects import Consensus
from tidemark.embedded.jars.fetch import ensure_jars
from tidemark.embedded.ports import LOOPBACK
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.manifest import MAX_FILES_PER_SEGMENT
from tidemark.log.publish import read_log
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import read_followed
from tidemark.settings import ROOT, Settings

PARTITIONS = 4
ENTITIES = 30_000
POLLED = 0.05
"""Seconds between two looks at the pointers."""
PIPELINE = """
name: {name}
source:
  kafka: {{topics: ["{name}"]}}
schedule: null
follow: {{every: 1s, for: {seconds}s}}
log: {{path: "{folder}/log"}}
writers:
  - {{name: cassandra, kind: journal, keyspace: {name}}}
"""


@dataclass
class Minute:
    """What was seen in one minute."""

    latencies: list[float] = field(default_factory=list)
    memory: int = 0


@dataclass
class Measured:
    """Records on their way, and the latencies of those that have arrived."""

    sent: dict[int, deque[tuple[int, float]]] = field(
        default_factory=lambda: {partition: deque() for partition in range(PARTITIONS)}
    )
    minutes: list[Minute] = field(default_factory=lambda: [Minute()])

    def arrived(self, partition: int, pointer: int, now: float) -> None:
        waiting = self.sent[partition]
        while waiting and waiting[0][0] <= pointer:
            self.minutes[-1].latencies.append(now - waiting.popleft()[1])


def send_first(kafka: KafkaConnection, topic: str) -> None:
    """Send one record of an entity of its own to every partition."""
    load = Load(appends=PARTITIONS, entities=PARTITIONS, partitions=PARTITIONS, prefix="first")
    producer = Producer({"bootstrap.servers": kafka.servers})
    for partition in range(PARTITIONS):
        for key, header, value in load.of_partition(partition):
            producer.produce(topic, value, key, partition, headers=[("journal.action", header)])
    producer.flush()


def produce(kafka: KafkaConnection, topic: str, rate: int, measured: Measured, over: threading.Event) -> None:
    """Send at this rate until the end; note when each record was sent, by partition and offset."""
    producer = Producer({"bootstrap.servers": kafka.servers, "linger.ms": 2, "acks": "all"})
    load = Load(appends=10**9, entities=ENTITIES, partitions=PARTITIONS)
    streams = [load.of_partition(partition) for partition in range(PARTITIONS)]
    began, number = time.monotonic(), 0
    while not over.is_set():
        while number < (time.monotonic() - began) * rate:
            partition = number % PARTITIONS
            key, header, value = next(streams[partition])

            def noted(_: object, message: object, at: float = time.monotonic()) -> None:
                measured.sent[message.partition()].append((message.offset(), at))  # type: ignore[attr-defined]

            headers = [("journal.action", header)]
            producer.produce(topic, value, key, partition, noted, headers=headers)
            number += 1
        producer.poll(0.002)
    producer.flush()


def measure(
    kafka: KafkaConnection, cassandra: CassandraConnection, folder: Path, minutes: float, rate: int
) -> None:
    name = f"follow_{uuid4().hex[:8]}"
    (folder / "pipelines").mkdir(exist_ok=True)
    text = PIPELINE.format(name=name, folder=folder, seconds=int(minutes * 60) + 20)
    (folder / "pipelines" / f"{name}.yaml").write_text(text)
    with KafkaAdminClient(**kafka.client_options()) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])
    connections, summary = folder / "connections.json", folder / "summary.json"
    declared = Connections(kafka=kafka, cassandra={"cassandra_default": cassandra})
    declared.write(connections)
    control = open_control(declared)
    jars = ",".join(str(jar) for jar in ensure_jars(Settings.read(), only="spark").spark)
    environ = {**os.environ, "TIDEMARK_PIPELINES": str(folder / "pipelines"), "SPARK_LOCAL_IP": LOOPBACK}
    environ["PYSPARK_SUBMIT_ARGS"] = f"--master local[2] --jars {jars} pyspark-shell"
    command = [sys.executable, str(ROOT / "spark_apps" / "follow.py"), "--pipeline", name]
    command += ["--connections", str(connections), "--run-id", "bench", "--summary", str(summary)]
    log = (folder / "follow.log").open("w")
    process = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)
    measured, over = Measured(), threading.Event()
    producer = threading.Thread(target=produce, args=(kafka, name, rate, measured, over))
    try:
        session = connect(cassandra)
        send_first(kafka, name)
        while (
            not ((followed := read_followed(control, name)) and followed.records) and process.poll() is None
        ):
            time.sleep(0.2)
        query = pointer_query(session, name)
        producer.start()
        end, minute_ends = time.monotonic() + minutes * 60, time.monotonic() + 60
        while time.monotonic() < end:
            if process.poll() is not None:
                sys.exit(f"follow ended early:\n{(folder / 'follow.log').read_text()[-3000:]}")
            for row in session.execute(query, (name, list(range(PARTITIONS)))):
                measured.arrived(row.partition, row.offset, time.monotonic())
            if time.monotonic() >= minute_ends:
                minute_ends += 60
                show(measured, process.pid)
            time.sleep(POLLED)
    finally:
        over.set()
        if producer.is_alive():
            producer.join()
        process.terminate()
        process.wait(60)
        log.close()
    show(measured, None)
    report(LogControl(control, name), folder, measured, json.loads(summary.read_text()))


def has_delivered(control: Consensus, pipeline: str) -> bool:
    followed = read_followed(control, pipeline)
    return followed is not None and followed.records > 0


def pointer_query(session: Any, keyspace: str) -> Any:
    """The statement that reads the pointers."""
    return session.prepare(
        f"SELECT partition, offset FROM {keyspace}.pointer2 WHERE topic = ? AND partition IN ?"
    )


def show(measured: Measured, pid: int | None) -> None:
    """Print the minute that ends, and begin the next one."""
    minute = measured.minutes[-1]
    if pid is not None:
        minute.memory = psutil.Process(pid).memory_info().rss
    if minute.latencies:
        p50, p99, most = np.percentile(minute.latencies, [50, 99, 100])
        print(
            f"minute {len(measured.minutes):3}: {len(minute.latencies):7,} records, p50 {p50:5.2f} s, p99 "
            f"{p99:5.2f} s, most {most:5.2f} s, memory {minute.memory / 2**20:5.0f} MiB",
            flush=True,
        )
    measured.minutes.append(Minute())


def report(control: LogControl, folder: Path, measured: Measured, summary: dict[str, object]) -> None:
    every = [one for minute in measured.minutes for one in minute.latencies]
    p50, p99 = np.percentile(every, [50, 99])
    manifest = read_log(control, LogFolder(control.pipeline, str(folder / "log")))
    files = sum(1 for path in (folder / "log").rglob("*.parquet"))
    print(f"all: {len(every):,} records, p50 {p50:.2f} s, p99 {p99:.2f} s (append → pointer2)")
    print(f"the run's own figures: {json.dumps(summary)}")
    full = [minute for minute in measured.minutes if minute.memory]
    if len(full) > 1:
        print(f"memory: {full[0].memory / 2**20:.0f} → {full[-1].memory / 2**20:.0f} MiB")
    times = re.findall(r"\bround_seconds=([0-9.]+)", (folder / "follow.log").read_text())
    if len(times) > 2:  # the last line is about the whole run
        print(f"round time, first and last minute: {times[0]} → {times[-2]} s")
    closed, active = manifest.closed_segment_count, len(manifest.active.files)
    print(
        f"files: {files} in the folder; in the log {manifest.closed_file_count} of {closed} closed segments "
        f"(at most {closed * PARTITIONS * 2} once merged) and {active} of the active one (at most "
        f"{MAX_FILES_PER_SEGMENT + PARTITIONS - 1})"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="follow", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=500, help="appends a second")
    parser.add_argument("--here", action="store_true", help="use the services of the environment")
    given = parser.parse_args(argv)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if given.here:
            settings = Settings.read()
            kafka = KafkaConnection(servers=f"{LOOPBACK}:{settings.kafka_port}")
            cassandra = CassandraConnection(hosts=(LOOPBACK,), port=settings.cassandra_port)
            stack.callback(disconnect_all)
        else:
            own = stack.enter_context(own_services())
            kafka, cassandra = own.kafka, own.cassandra
        measure(kafka, cassandra, folder, given.minutes, given.rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
