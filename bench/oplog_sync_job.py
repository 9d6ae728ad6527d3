"""Synchronise objects with dumps, in turns with a bare join of the same data; for ``bench/oplog.py``.

Answers with the seconds of each, and with what the last synchronisation has found.
"""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from oplog_agent import PIPELINE_NAME
from oplog_replication import place_of_objects

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.sync import open_sync
from tidemark.cli.connections import look_up
from tidemark.pipeline.connections import collect_connections
from tidemark.pipeline.loader import find_pipeline
from tidemark.spark.jobs.oplog.sync_objects import compare
from tidemark.spark.source.cassandra import register_cassandra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DUMP = "type string, id string, timestamp timestamp, parents array<string>"


def bare_join(spark: "SparkSession", dump: str, output: str) -> int:
    """Join a dump with the table, and write what differs; how much that is."""
    from pyspark.sql import functions as f

    dumped = spark.read.schema(DUMP).json(dump)
    place = place_of_objects()
    keyspace, table = str(place).replace('"', "").split(".")
    rows = spark.read.format("cassandra").options(keyspace=keyspace, table=table).load()
    current = rows.select(
        "type", "id", *(f.col(name).alias(f"current_{name}") for name in ("timestamp", "parents"))
    )
    joined = dumped.join(current, ["type", "id"], "full_outer")
    is_same = (f.col("timestamp") == f.col("current_timestamp")) & (
        f.col("parents") == f.col("current_parents")
    )
    joined.where(~f.coalesce(is_same, f.lit(False))).write.parquet(output)
    return spark.read.parquet(output).count()


def main(dumps: str, output: str, answer: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    declared = find_pipeline(PIPELINE_NAME)
    connections = collect_connections(declared, look_up)
    register_cassandra(spark, connections.cassandra["cassandra_default"])
    sync = open_sync(OpenPipeline(declared, connections))
    found: dict[str, list[float]] = {"bare": [], "validate": [], "compare": []}
    for number, dump in enumerate(json.loads(dumps)):
        began = time.monotonic()
        different = bare_join(spark, dump, f"{output}/{number}")
        found["bare"].append(time.monotonic() - began)
        began = time.monotonic()
        validated = sync.validate(dump, "newest", print)
        found["validate"].append(time.monotonic() - began)
        began = time.monotonic()
        topic = sync.read_topic()
        diff = compare(spark, sync, validated, topic, sync.reached(topic, topic.ends))
        found["compare"].append(time.monotonic() - began)
    began = time.monotonic()
    sent = sync.send(diff)
    seconds = time.monotonic() - began
    outcomes = {**diff.outcomes, "bare_differences": different}
    Path(answer).write_text(json.dumps({**found, "send": seconds, "sent": sent.sent, "outcomes": outcomes}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
