"""Objects in a topic and in their collection: sent to Kafka, then captured and delivered by ``follow``."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from oplog_agent import PIPELINE_NAME, TOPIC  # isort: skip
from services import Own  # isort: skip
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.embedded.jars.fetch import ensure_jars
from tidemark.embedded.ports import LOOPBACK
from tidemark.log.state.followed import read_followed
from tidemark.operations.operation import EventName, ObjectOperation, encoded
from tidemark.operations.times import rfc3339
from tidemark.settings import ROOT

FIRST = 1_794_000_000_000
"""When the first object was made, in ms."""
FOLLOWED_WITHIN = 600


def object_at(number: int) -> ObjectOperation:
    """One of the objects: the operation that made it."""
    parents = (f"channel/{number % 1000}",)
    return ObjectOperation(EventName.INSERT, FIRST + number, parents, "video", f"x{number:07d}")


def send_objects(own: Own, count: int) -> None:
    """Send the operation of every object to the topic."""
    options: dict[str, Any] = {
        "bootstrap.servers": own.kafka.servers,
        "acks": "all",
        "enable.idempotence": True,
    }
    producer = Producer(
        {**options, "linger.ms": 20, "compression.type": "lz4", "partitioner": "murmur2_random"}
    )
    for number in range(count):
        made = object_at(number)
        while True:
            try:
                producer.produce(TOPIC, value=encoded(made), key=made.key)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


def deliver_objects(own: Own, count: int, folder: Path) -> float:
    """Run ``follow`` until so many operations are in the collection; returns the seconds."""
    connections, log = folder / "connections.json", folder / "follow.log"
    declared = Connections(kafka=own.kafka, cassandra={"cassandra_default": own.cassandra})
    declared.write(connections)
    control = open_control(declared)
    jars = ",".join(str(jar) for jar in ensure_jars(own.settings, only="spark").spark)
    environ = {**os.environ, "SPARK_LOCAL_IP": LOOPBACK, "PYSPARK_PYTHON": sys.executable}
    environ["PYSPARK_SUBMIT_ARGS"] = f"--master local[2] --driver-memory 2g --jars {jars} pyspark-shell"
    command = [sys.executable, str(ROOT / "spark_apps" / "follow.py"), "--pipeline", PIPELINE_NAME]
    command += [
        "--connections",
        str(connections),
        "--run-id",
        "bench",
        "--summary",
        str(folder / "follow.json"),
    ]
    began = time.monotonic()
    with log.open("w") as out:
        process = subprocess.Popen(command, env=environ, stdout=out, stderr=subprocess.STDOUT)
    try:
        while not ((found := read_followed(control, PIPELINE_NAME)) and found.records >= count):
            if process.poll() is not None or time.monotonic() - began > FOLLOWED_WITHIN:
                sys.exit(f"follow has not delivered the objects:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        return time.monotonic() - began
    finally:
        process.terminate()
        process.wait(60)


def dump_lines(count: int, differences: int) -> Iterator[str]:
    """A dump of the objects with so many differences: lacking, further, newer ones, and other parents."""
    step = max(count // (differences * 3 // 4), 1)
    made = 0
    for number in range(count):
        one = object_at(number)
        timestamp, parents = one.timestamp, list(one.parents)
        if number % step == 0 and made < differences * 3 // 4:
            made += 1
            if made % 3 == 0:
                continue
            if made % 3 == 1:
                timestamp += count
            else:
                parents = ["channel/moved"]
        yield line_of(one.id, timestamp, parents)
    for number in range(count, count + differences - made):
        yield line_of(f"x{number:07d}", FIRST + number, [])


def line_of(id_: str, timestamp: int, parents: list[str]) -> str:
    """An object as dumps have it."""
    return (
        json.dumps({"type": "video", "id": id_, "timestamp": rfc3339(timestamp), "parents": parents}) + "\n"
    )


def write_dump(path: Path, count: int, differences: int) -> None:
    """Write a dump."""
    with path.open("w") as file:
        file.writelines(dump_lines(count, differences))
