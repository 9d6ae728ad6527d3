"""Deliver a log of journal actions to Cassandra and verify it, as ``spark_apps/verify.py`` does it.

Submitted by ``bench/verify.py``; answers with the seconds of the verifications themselves and with the most
memory that one of Spark's Python workers took meanwhile.
"""

import json
import sys
import time
from functools import partial
from pathlib import Path

from journal_job import Watch  # isort: skip
from tidemark.connections import CassandraConnection
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.publish import publish
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import JournalDeclaration
from tidemark.spark.jobs.deliver import write_parts_with
from tidemark.spark.jobs.verify import verify_with_spark
from tidemark.verification.selection import EVERYTHING, EntitySelection
from tidemark.writers.journal.writer import JournalWriter


def main(root: str, keyspace: str, port: str, bindings: str, sample: str, answer: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    declared = JournalDeclaration.model_validate(
        {"name": "journal", "kind": "journal", "keyspace": keyspace}, context={}
    )
    connection = CassandraConnection(hosts=("127.0.0.1",), port=int(port))
    writer = JournalWriter("bench", declared, connection, "UTC")
    control, folder = LogControl(MemoryConsensus(), "bench"), LogFolder("bench", root)
    positions, write_parts = Positions(MemoryConsensus(), "bench"), write_parts_with(spark)
    for text in json.loads(bindings):
        binding = Binding.from_json(text)
        control.add_binding(control.bindings_head(), binding)
        publish(control, folder, binding, 10**12, binding.t)
        log = PublishedLog.open(control, root)
        deliver_to(
            writer, log, positions, "bench", write_parts, limit=1, reload=partial(positions.load, writer.name)
        )
    seconds, watch = [], Watch()
    for selection in (EVERYTHING, EntitySelection(sample=int(sample))):
        began = time.monotonic()
        found = verify_with_spark(spark, writer, log, positions, selection)
        seconds.append(time.monotonic() - began)
        assert found.is_clean, found.differences
        assert found.entities == found.same > 0, found
    whole, few = seconds
    Path(answer).write_text(json.dumps({"seconds": whole, "sample": few, "peak": watch.stop()}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
