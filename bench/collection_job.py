"""Deliver a log of upserts to a collection, as ``spark_apps/deliver.py`` does it; submitted by
``bench/collection.py``. Answers with the seconds of each delivery."""

import json
import sys
import time
from pathlib import Path

from collection_load import connection_at, declared_in

from tidemark.cassandra.session import connect
from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.publish import publish
from tidemark.log.state.control import LogControl
from tidemark.spark.jobs.deliver import reload_from, write_parts_with
from tidemark.writers.collection.writer import CollectionWriter


def main(root: str, keyspace: str, port: str, bindings: str, answer: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    connection, name = connection_at(int(port)), Path(root).name
    writer = CollectionWriter(name, declared_in(keyspace), connection)
    session = connect(connection)
    create_schema(session, connection.control_replication)
    consensus = LightweightConsensus(session)
    control, folder = LogControl(consensus, name), LogFolder(name, root)
    positions, seconds = Positions(consensus, name), []
    reload = reload_from(connection, name, writer.name)
    for text in json.loads(bindings):
        binding = Binding.from_json(text)
        control.add_binding(control.bindings_head(), binding)
        publish(control, folder, binding, 10**12, binding.t)
        log = PublishedLog.open(control, root)
        began = time.monotonic()
        delivered = deliver_to(
            writer, log, positions, "bench", write_parts_with(spark), limit=1, reload=reload
        )
        seconds.append(time.monotonic() - began)
        assert delivered.position == binding.end, delivered
    Path(answer).write_text(json.dumps({"seconds": seconds}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
