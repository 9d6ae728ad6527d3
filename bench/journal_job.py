"""Deliver a log of journal actions to Cassandra, as ``spark_apps/deliver.py`` does it.

Submitted by ``bench/journal.py``; answers with the seconds of the work itself and with the most memory that
one of Spark's Python workers took.
"""

import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.publish import publish
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import JournalDeclaration
from tidemark.spark.jobs.deliver import reload_from, write_parts_with
from tidemark.writers.journal.writer import JournalWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Watch:
    """Samples the memory of Spark's Python workers and keeps the maximum.

    ``of`` is the process that started them, or Java; None where Java started this one too.
    """

    def __init__(self, of: psutil.Process | None = None) -> None:
        self.peak, self._of = 0, of or psutil.Process().parent()
        self._over = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self._over.wait(0.2):
            for process in self._children():
                try:
                    if "pyspark" in " ".join(process.cmdline()) and "java" not in process.name():
                        self.peak = max(self.peak, process.memory_info().rss)
                except psutil.Error:
                    continue

    def _children(self) -> list[psutil.Process]:
        try:
            return self._of.children(recursive=True)
        except psutil.Error:  # it has ended
            return []

    def stop(self) -> int:
        self._over.set()
        return self.peak


def deliver_bindings(
    spark: "SparkSession", root: str, keyspace: str, port: int, bindings: Sequence[Binding]
) -> list[float]:
    """Publish and deliver bindings whose captures are in ``root``; the seconds of each delivery."""
    declared = JournalDeclaration.model_validate(
        {"name": "journal", "kind": "journal", "keyspace": keyspace}, context={}
    )
    connection = CassandraConnection(hosts=("127.0.0.1",), port=port)
    name = Path(root).name  # each call is its own pipeline, because the control plane keeps state
    writer = JournalWriter(name, declared, connection, "UTC")
    session = connect(connection)
    create_schema(session, connection.control_replication)
    consensus = LightweightConsensus(session)
    control, folder = LogControl(consensus, name), LogFolder(name, root)
    positions, seconds = Positions(consensus, name), []
    reload = reload_from(connection, name, writer.name)
    for binding in bindings:
        control.add_binding(control.bindings_head(), binding)
        publish(control, folder, binding, 10**12, binding.t)
        log = PublishedLog.open(control, root)
        began = time.monotonic()
        delivered = deliver_to(
            writer, log, positions, "bench", write_parts_with(spark), limit=1, reload=reload
        )
        seconds.append(time.monotonic() - began)
        assert delivered.position == binding.end, delivered
    return seconds


def main(root: str, keyspace: str, port: str, bindings: str, answer: str) -> None:
    from pyspark.sql import SparkSession

    spark, watch = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate(), Watch()
    given = [Binding.from_json(text) for text in json.loads(bindings)]
    seconds = deliver_bindings(spark, root, keyspace, int(port), given)
    Path(answer).write_text(json.dumps({"seconds": seconds, "peak": watch.stop()}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
