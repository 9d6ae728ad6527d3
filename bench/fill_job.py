"""Fills a topic with records of 300 bytes, evenly over its partitions; submitted by the benches."""

import json
import sys
from pathlib import Path

KEYS, VALUE = 10_000, 300


def main(servers: str, topic: str, per_partition: str, partitions: str, answer: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    total = int(per_partition) * int(partitions)
    rows = spark.range(total).selectExpr(
        f"concat('order-', cast(id % {KEYS} AS string)) AS key",
        # Text that compresses about as well as JSON does, not at all like one letter repeated.
        f"rpad(concat(sha2(string(id), 512), sha2(string(id % 97), 512)), {VALUE}, '.') AS value",
        f"cast(id % {partitions} AS int) AS partition",
    )
    options = {"kafka.bootstrap.servers": servers, "topic": topic, "kafka.acks": "all"}
    rows.write.format("kafka").options(**options).save()
    Path(answer).write_text(json.dumps({"records": total}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
