"""A Spark session with the data source on the test's Cassandra, and keyspaces that go with their test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.services.log_runs import spark_environ

from tidemark.connections import CassandraConnection
from tidemark.embedded.ports import free_port
from tidemark.spark.source.cassandra import register_cassandra


@contextmanager
def spark_on(connection: CassandraConnection) -> Iterator[SparkSession]:
    """A session that knows this Cassandra; its web pages are there to be looked at."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in spark_environ().items():
            patch.setenv(name, value)
        spark = (
            SparkSession.builder.config("spark.ui.port", str(free_port()))
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.log.level", "OFF")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.pyspark.python", sys.executable)
            .getOrCreate()
        )
        try:
            register_cassandra(spark, connection)
            yield spark
        finally:
            spark.stop()


@dataclass(frozen=True)
class Keyspace:
    """A keyspace of a test's own."""

    name: str
    session: Any
    spark: SparkSession

    def execute(self, query: str, *values: Any) -> Any:
        """A query in which ``$`` stands for the keyspace."""
        return self.session.execute(query.replace("$", self.name), values or None)

    def read(self, table: str, **options: str) -> DataFrame:
        return self.spark.read.format("cassandra").options(keyspace=self.name, table=table, **options).load()

    def write(self, rows: DataFrame, table: str, **options: str) -> None:
        target = {"keyspace": self.name, "table": table, **options}
        rows.write.format("cassandra").options(**target).mode("append").save()


@contextmanager
def new_keyspace(session: Any, spark: SparkSession) -> Iterator[Keyspace]:
    keyspace = Keyspace(f"source_{uuid4().hex[:8]}", session, spark)
    keyspace.execute(
        "CREATE KEYSPACE $ WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    yield keyspace
    keyspace.execute("DROP KEYSPACE $")
