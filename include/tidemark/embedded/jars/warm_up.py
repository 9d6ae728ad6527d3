"""A small Spark application that loads the classes Tidemark's applications use, to archive them.

Run by ``class_archive`` with spark-submit. Reads and writes nothing but a temporary folder.
"""

import sys
import tempfile
from collections.abc import Iterator
from typing import Any


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def main() -> int:
    """Write Parquet, read it back, group, join and hand it to Python and back."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = (
        SparkSession.builder.appName("tidemark-warm-up")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory(prefix="tidemark-warm-up-") as folder:
        identity = f.col("id")
        numbers = spark.range(1000).select(
            "id", (identity % 7).alias("key"), identity.cast("string").alias("text")
        )
        sorted_parts = numbers.repartition(2, "key").sortWithinPartitions("id")
        sorted_parts.write.mode("overwrite").option("compression", "zstd").parquet(folder)
        read = spark.read.parquet(folder)
        counts = read.groupBy("key").agg(f.count("*").alias("n"), f.max("text"))
        counts.join(read.select("key").distinct(), "key").orderBy("key").collect()
        read.mapInArrow(_same, read.schema).count()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
