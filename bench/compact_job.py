"""Compact a log of journal lives: as ``<pipeline>.compact_log`` does it, or as one would write it in Spark.

Submitted by ``bench/compact.py``; answers with the seconds of the work itself, step by step, what stays as
one number, and the most memory that one of Spark's Python workers took.
"""

import json
import sys
import time
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compact_load import NAME, SEGMENT_BYTES, WRITER, Lives, make_log  # isort: skip
from journal_job import Watch  # isort: skip
from tidemark.compaction.compact import Compacted, Compaction
from tidemark.compaction.inputs import CompactionSettings, Questions
from tidemark.compaction.policies.rules import candidates
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.state.positions import Positions
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.publish import read_log
from tidemark.log.state.control import LogControl
from tidemark.spark.jobs.compact import SparkEngine
from tidemark.spark.jobs.read_log import read_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ACTION = "cast(filter(headers, h -> h.name = 'journal.action')[0].value AS string)"


def compact(spark: "SparkSession", root: str, consensus: MemoryConsensus) -> dict[str, Any]:
    """Compact twice with Tidemark; the second run finds nothing to do."""
    settings = CompactionSettings("journal", 0, 0, SEGMENT_BYTES, (WRITER,))
    questions = Questions(LogControl(consensus, NAME), Positions(consensus, NAME), root, settings)
    compaction = Compaction(questions, SparkEngine(lambda: spark))
    moments = [time.monotonic()]
    plan = compaction.plan("bench")
    moments.append(time.monotonic())
    compaction.write(plan.digest, "bench")
    moments.append(time.monotonic())
    compaction.verify(plan.digest, "bench")
    moments.append(time.monotonic())
    first = compaction.publish(plan.digest, "bench", 0)
    moments.append(time.monotonic())
    assert isinstance(first, Compacted)
    again = compaction.run("bench")
    seconds = time.monotonic() - moments[-1]
    assert not isinstance(again, Compacted)
    log, folder = read_log(questions.control, LogFolder(NAME, root)), LogFolder(NAME, root)
    kept = [folder.at(file) for file in candidates(log)]
    return {
        "seconds": moments[-1] - moments[0],
        "steps": [later - earlier for earlier, later in pairwise(moments)],
        "again": seconds,
        "written": first.bytes_written,
        "kept": _digest(read_parquet(spark, kept)),
    }


def window(spark: "SparkSession", root: str, consensus: MemoryConsensus) -> dict[str, Any]:
    """The straightforward Spark version: windows by entity over the whole log, which is then rewritten."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    log, folder = read_log(LogControl(consensus, NAME), LogFolder(NAME, root)), LogFolder(NAME, root)
    began = time.monotonic()
    messages = read_parquet(spark, [folder.at(file) for file in candidates(log)])
    action = f.expr(ACTION)
    read = messages.withColumns(
        {
            "to": f.get_json_object(action, "$.append.range.to").cast("long"),
            "up_to": f.get_json_object(action, "$.delete.to").cast("long"),
            "purges": f.get_json_object(action, "$.purge").isNotNull(),
        }
    )
    entity = Window.partitionBy("topic", "key")
    purged = read.withColumn("purge", f.max(f.when(f.col("purges"), f.col("id"))).over(entity))
    after = purged.where("NOT purges AND (to IS NOT NULL OR up_to IS NOT NULL) AND id > coalesce(purge, -1)")
    furthest = f.max(f.when(f.col("up_to").isNotNull(), f.struct("up_to", "id"))).over(entity)
    deleted = after.withColumn("furthest", furthest)
    before = f.max(f.when(f.expr("to IS NOT NULL AND id < furthest.id"), f.col("id"))).over(entity)
    judged = deleted.withColumn("last_before", before)
    kept = judged.where(
        "furthest IS NULL OR id >= furthest.id OR id = last_before OR to > furthest.up_to"
    ).select(*messages.columns)
    out = f"{root}/window"
    in_order = kept.repartition("topic", "partition").sortWithinPartitions("id")
    in_order.write.option("compression", "zstd").parquet(out)
    seconds = time.monotonic() - began
    written = sum(path.stat().st_size for path in Path(out).glob("*.parquet"))
    return {"seconds": seconds, "written": written, "kept": _digest(spark.read.parquet(out))}


def _digest(messages: "DataFrame") -> str:
    """A digest of all messages in every column: equal outputs have equal digests."""
    from pyspark.sql import functions as f

    whole = messages.select("id", f.xxhash64(*LOG_SCHEMA.names).alias("content"))
    found = whole.orderBy("id").toArrow()
    return sha256(b"".join(found[name].to_numpy().tobytes() for name in found.column_names)).hexdigest()


def main(way: str, root: str, messages: str, answer: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.range(10).count()  # Spark's start is not part of the measurement
    consensus = MemoryConsensus()
    make_log(root, Lives(int(messages)), consensus)
    watch = Watch()
    found = (compact if way == "compact" else window)(spark, root, consensus)
    Path(answer).write_text(json.dumps({**found, "peak": watch.stop()}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
