"""The data source on a Spark Connect server: the same rows as on a classic session, in every way to read."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.services.cassandra_tables import Keyspace, new_keyspace

from tidemark.spark import join_by_key, query_table, register_cassandra
from tidemark.spark.engine import open_session
from tidemark.spark.source.errors import JoinRefused

pytestmark = pytest.mark.system

ROWS = [("ann", 2025, 1), ("ann", 2026, 2), ("bob", 2026, 3), ("cec", 2026, 4)]


@pytest.fixture(scope="module")
def connected(services: Any) -> Iterator[SparkSession]:
    with open_session("tests.source", services.spark) as engine:
        register_cassandra(engine.spark, services.cassandra)
        yield engine.spark


@pytest.fixture(scope="module")
def orders(services: Any, connected: SparkSession) -> Iterator[Keyspace]:
    """A table that was written through the server."""
    with new_keyspace(services.session, connected) as keyspace:
        keyspace.execute(
            "CREATE TABLE $.orders (customer text, year int, total int, note text, "
            "PRIMARY KEY (customer, year))"
        )
        keyspace.write(connected.createDataFrame(ROWS, "customer string, year int, total int"), "orders")
        yield keyspace


def totals(frame: Any) -> list[int]:
    return sorted(row.total for row in frame.select("total").collect())


def test_what_was_written_is_read(orders: Keyspace) -> None:
    assert totals(orders.read("orders")) == [1, 2, 3, 4]


def test_filters_of_one_query_leave_no_trace_in_another(orders: Keyspace) -> None:
    table = orders.read("orders")
    assert table.columns == ["customer", "year", "note", "total"]
    assert totals(table.where("customer = 'ann' AND year = 2026")) == [2]
    assert totals(table) == [1, 2, 3, 4]
    of_ann, of_bob = (table.where(f"customer = '{name}'") for name in ("ann", "bob"))
    assert totals(of_ann.union(of_bob)) == [1, 2, 3]


def test_a_view_is_read_with_different_filters(orders: Keyspace, connected: SparkSession) -> None:
    orders.read("orders").createOrReplaceTempView("orders_of_a_test")
    for condition, expected in (
        ("customer = 'ann'", [1, 2]),
        ("customer = 'cec'", [4]),
        ("true", [1, 2, 3, 4]),
    ):
        assert totals(connected.sql(f"SELECT * FROM orders_of_a_test WHERE {condition}")) == expected


def test_a_query_reads_the_columns_that_it_uses(orders: Keyspace, connected: SparkSession) -> None:
    found = query_table(
        connected,
        lambda table: table.where("year = 2026").groupBy("customer").sum("total"),
        keyspace=orders.name,
        table="orders",
    )
    assert sorted(tuple(row) for row in found.collect()) == [("ann", 2), ("bob", 3), ("cec", 4)]


def test_rows_are_joined_by_key(orders: Keyspace, connected: SparkSession) -> None:
    wanted = connected.createDataFrame([("ann", 2026), ("dan", 2026)], "customer string, year int")
    found = join_by_key(
        wanted, keyspace=orders.name, table="orders", on=["customer", "year"], columns=["total"], how="left"
    )
    assert sorted(tuple(row) for row in found.collect()) == [("ann", 2026, 2), ("dan", 2026, None)]


def test_a_join_that_cannot_be_meant_is_refused_before_anything_is_read(
    orders: Keyspace, connected: SparkSession
) -> None:
    wanted = connected.createDataFrame([(2026,)], "year int")
    with pytest.raises(JoinRefused, match="must name the whole partition key"):
        join_by_key(wanted, keyspace=orders.name, table="orders", on="year")
