"""Read a journal through the data source, or write one; submitted by ``bench/source.py``."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tidemark.connections import CassandraConnection
from tidemark.spark.source.cassandra import register_cassandra
from tidemark.spark.source.join_by_key import join_by_key
from tidemark.spark.source.query_table import query_table

THREE = ("id", "seq_nr", "payload_txt")


def timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def main(what: str, port: str, places: str, rounds: str, answer: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
    register_cassandra(spark, CassandraConnection(hosts=("127.0.0.1",), port=int(port)))
    place = json.loads(places)

    def read(keyspace: str, **options: str) -> None:
        table = spark.read.format("cassandra").options(keyspace=keyspace, table="journal", **options).load()
        table.write.format("noop").mode("overwrite").save()

    def write(path: str, keyspace: str) -> None:
        rows = spark.read.parquet(path)
        options = {"keyspace": keyspace, "table": "journal", "writetime": "write_time"}
        rows.write.format("cassandra").options(**options).mode("append").save()

    def keep(condition: str, keyspace: str) -> None:
        table = spark.read.format("cassandra").options(keyspace=keyspace, table="journal").load()
        table.where(condition).write.format("noop").mode("overwrite").save()

    def choose(keyspace: str) -> None:
        chosen = query_table(spark, lambda table: table.select(*THREE), keyspace=keyspace, table="journal")
        chosen.write.format("noop").mode("overwrite").save()

    def join(keyspace: str, way: str) -> None:
        table = spark.read.format("cassandra").options(keyspace=keyspace, table="journal").load()
        keys = spark.read.parquet(place["keys"])
        if way == "by key":
            found = join_by_key(keys, keyspace=keyspace, table="journal", on=keys.columns)
        else:
            found = keys.join(table, keys.columns)
        found.write.format("noop").mode("overwrite").save()

    seconds: dict[str, list[float]] = {}
    times = range(int(rounds))
    if what == "keys":
        for _ in times:
            for name, condition in (("pushed", "seq_nr = 5"), ("not pushed", "seq_nr + 0 = 5")):
                seconds.setdefault(name, []).append(timed(lambda c=condition: keep(c, place["full"])))
            for name in ("by key", "by scan"):
                seconds.setdefault(name, []).append(timed(lambda n=name: join(place["full"], n)))
    elif what == "read":
        read(place["small"])
        seconds["all"] = [timed(lambda: read(place["full"])) for _ in range(int(rounds))]
        three = {"columns": ",".join(THREE)}
        seconds["three"] = [timed(lambda: read(place["full"], **three)) for _ in range(int(rounds))]
        seconds["needed"] = [timed(lambda: choose(place["full"])) for _ in range(int(rounds))]
    else:
        write(place["small"], place["keyspace"])
        seconds["all"] = [timed(lambda: write(place["full"], place["keyspace"])) for _ in range(int(rounds))]
    Path(answer).write_text(json.dumps(seconds))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
