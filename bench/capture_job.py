"""One way to bring a range of Kafka records into Parquet files; submitted by ``bench/capture.py``.

bare: Spark's own reader and writer, zstd. captured: as ``spark_apps/capture.py`` does it, without the audit.
audited: the same with its audit. Each answers with the seconds of the work itself and its peak memory.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.connections import KafkaConnection
from tidemark.log.audit import prepare_audit
from tidemark.log.capture import write_files
from tidemark.log.expectations import Suite
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding, Slice
from tidemark.spark.jobs.capture import SparkCapture

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def main(way: str, servers: str, topic: str, upper: str, partitions: str, folder: str, answer: str) -> None:
    from pyspark.sql import SparkSession  # before Great Expectations, which imports it too

    loading = threading.Thread(target=prepare_audit)
    if way == "audited":
        loading.start()

    spark = (
        SparkSession.builder.config("spark.ui.enabled", "false")
        .config("spark.sql.parquet.compression.codec", "zstd")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
        .getOrCreate()
    )
    slices = tuple(Slice(topic, partition, 0, int(upper)) for partition in range(int(partitions)))
    binding = Binding(1, 0, slices, "bench")
    began = time.monotonic()
    kafka, log = KafkaConnection(servers=servers), LogFolder("bench", folder)
    if way == "bare":
        read_range(spark, slices, kafka).write.parquet(folder)
    else:
        engine = SparkCapture(lambda: spark, kafka, "read_committed", log, Suite())
        captured = write_files(log, binding, slices, engine)
        if way == "audited":
            loading.join()
            judgements = engine.audit(captured)
            assert all(judgement.success for judgement in judgements), judgements
    seconds = time.monotonic() - began
    # spark-submit's JVM is the driver's, and this process its child.
    found = {"seconds": seconds, "python": peak("self"), "jvm": peak(os.getppid())}
    Path(answer).write_text(json.dumps(found))
    spark.stop()


def read_range(spark: "SparkSession", slices: tuple[Slice, ...], kafka: KafkaConnection) -> "DataFrame":
    """The records of slices that begin at offset 0, by Spark's own reader."""
    topic, ends = slices[0].topic, {str(one.partition): one.upper for one in slices}
    options = {
        **kafka.spark_options(),
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({topic: [one.partition for one in slices]}),
        "startingOffsets": json.dumps({topic: dict.fromkeys(ends, 0)}),
        "endingOffsets": json.dumps({topic: ends}),
        "includeHeaders": "true",
    }
    return spark.read.format("kafka").options(**options).load()


def peak(process: object) -> int:
    """The peak memory of a process, in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main(*sys.argv[1:])
