"""Delivery to Parquet files against a bare Spark copy, 1,000,000 messages; and resume, one at a time.

Run by ``make bench`` with the services up (``make up``: resume's positions are in Cassandra); prints tables
for bench/README.md.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from submit import submit  # isort: skip
from tidemark.cassandra.session import connect, disconnect_all
from tidemark.cli.connections import look_up
from tidemark.connections import CassandraConnection
from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.resume import resume_writer
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.embedded.jars.class_archive import driver_java_options, ensure_class_archive
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.log.publish import publish
from tidemark.log.state.control import LogControl
from tidemark.settings import Settings
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.files.writer import FilesWriter

MESSAGES, PARTITIONS, ROUNDS, SINGLY = 1_000_000, 4, 3, 5_000
HERE = Path(__file__).parent


def make_log(root: str, messages: int, partitions: int) -> Binding:
    """A captured binding of messages with 300 bytes each, audited but not yet published."""
    each = messages // partitions
    slices = tuple(Slice("orders", partition, 0, each) for partition in range(partitions))
    binding, folder = Binding(10_000_000, 0, slices, "bench"), LogFolder("bench", root)
    area = folder.new_area(binding.t)
    captured = []
    for s in slices:
        offsets = np.arange(each)
        first = binding.id_of(s.topic, s.partition, 0)
        hexes = [f"{number * 2654435761 % 2**61:0128x}" for number in range(first, first + each)]
        table = pa.table(
            {
                "id": offsets + first,
                "t": np.full(each, binding.t),
                "write_time": offsets + first + binding.t,
                "topic": ["orders"] * each,
                "partition": np.full(each, s.partition, dtype=np.int32),
                "offset": offsets,
                "timestamp": np.full(each, 1_794_000_000_000),
                "timestamp_type": np.zeros(each, dtype=np.int32),
                "key": pa.array([b"order-%d" % (number % 10_000) for number in range(each)], pa.binary()),
                "value": pa.array([(text * 3)[:300].encode() for text in hexes], pa.binary()),
                "headers": pa.nulls(each, LOG_SCHEMA.field("headers").type),
                "namespace": ["orders"] * each,
            }
        ).cast(LOG_SCHEMA)
        path = f"{area}/{s.partition}.parquet"
        pq.write_table(table, folder.area_at(path), compression="zstd", row_group_size=65_536)
        captured.append(folder.adopt_file(binding, [s], path))
    folder.remove_area(area)
    found = Captured(binding.t, tuple(one for one in captured if one), rows_read=messages)
    folder.write_captured(found)
    folder.write_audit(AuditRecord(binding.t, found.digest, ()))
    return binding


def measure_deliver() -> None:
    settings = Settings.read()
    ensure_class_archive(settings)
    options = driver_java_options(settings, MESSAGES)
    with tempfile.TemporaryDirectory() as folder:
        binding = make_log(f"{folder}/log", MESSAGES, PARTITIONS)
        found: dict[str, list[float]] = {"bare": [], "delivered": []}
        for number in range(ROUNDS):
            for way, seconds in found.items():
                out = f"{folder}/{way}-{number}"
                arguments = (way, f"{folder}/log", binding.to_json(), out)
                done = submit(HERE / "deliver_job.py", *arguments, java_options=options)
                seconds.append(done.answer["seconds"])
    print(f"\n| {MESSAGES:,} messages of 300 bytes to Parquet files | s | messages/s |\n|---|---|---|")
    middle = {way: statistics.median(seconds) for way, seconds in found.items()}
    for way, seconds in middle.items():
        print(f"| {way} | {seconds:.1f} | {MESSAGES / seconds:,.0f} |")
    print(f"\ndelivered / bare, throughput: {middle['bare'] / middle['delivered']:.2f}")


def measure_resume() -> None:
    connection = CassandraConnection.from_airflow("cassandra_default", look_up("cassandra_default"))
    session = connect(connection)
    create_schema(session, connection.control_replication)
    positions = Positions(LightweightConsensus(session), f"bench-{uuid4().hex[:8]}")
    with tempfile.TemporaryDirectory() as folder:
        binding = make_log(f"{folder}/log", SINGLY, 1)
        control = LogControl(MemoryConsensus(), "bench")
        control.add_binding(control.bindings_head(), binding)
        log_folder = LogFolder("bench", f"{folder}/log")
        publish(control, log_folder, binding, 10**12, binding.t)
        declared = FilesDeclaration(name="archive", kind="files", path=f"{folder}/archive")
        writer = FilesWriter("bench", declared)
        hold = take(positions, positions.register("archive", writer.shape), "bench")
        gate = WriterGate(Cause.TARGET, 0, binding.end, binding.end, "a bench", 0)
        hold.commit(-1, {}, gate)
        hold.release()
        began = time.monotonic()
        log = PublishedLog.open(control, f"{folder}/log")
        resumed = resume_writer(writer, log, positions, "bench", singly=0, show=print)
        seconds = time.monotonic() - began
        assert resumed.gate is None, resumed
    commits = len(positions.history("archive"))
    print(
        f"\nresume, one at a time to a files writer: {SINGLY / seconds:,.0f} messages/s ({commits} commits)"
    )
    disconnect_all()


def main() -> None:
    measure_resume()
    measure_deliver()


if __name__ == "__main__":
    sys.exit(main())
