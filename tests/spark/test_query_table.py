"""Which columns of a table a query needs, by Spark's own plan: no Cassandra takes part (item 25)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tidemark.spark.source.query_table import needed_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = (
    "customer string, year int, number long, tags array<string>, total decimal(10, 2), home struct<zip:int>"
)
COLUMNS = ["customer", "year", "number", "tags", "total", "home"]


def with_new(table: "DataFrame") -> "DataFrame":
    return table.withColumn("next", table.year + 1).select("next", "home.zip")


def ranked(table: "DataFrame") -> "DataFrame":
    return table.selectExpr("customer", "row_number() OVER (PARTITION BY customer ORDER BY total) AS place")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(lambda t: t, COLUMNS, id="everything"),
        pytest.param(lambda t: t.select("total"), ["total"], id="a column"),
        pytest.param(lambda t: t.select("total").where("total > 1"), ["total"], id="with a filter on it"),
        pytest.param(lambda t: t.where("year = 1").select("total"), ["year", "total"], id="on another"),
        pytest.param(
            lambda t: t.where("customer = 'ann' AND year = 1").groupBy("number").sum("total"),
            ["customer", "year", "number", "total"],
            id="an aggregation",
        ),
        pytest.param(lambda t: t.groupBy().count(), [], id="the number of rows"),
        pytest.param(lambda t: t.drop("tags"), [c for c in COLUMNS if c != "tags"], id="all but one"),
        pytest.param(lambda t: t.selectExpr("size(tags) AS n"), ["tags"], id="an expression"),
        pytest.param(lambda t: t.selectExpr("customer", "explode(tags)"), ["customer", "tags"], id="explode"),
        pytest.param(with_new, ["year", "home"], id="a new column, and a field"),
        pytest.param(ranked, ["customer", "total"], id="a window"),
        pytest.param(lambda t: t.dropDuplicates(["year"]).select("year"), ["year"], id="without doubles"),
        pytest.param(
            lambda t: t.orderBy("number").select("year").limit(5), ["year", "number"], id="an order"
        ),
        pytest.param(
            lambda t: t.select("year", "total").join(t.select("number", "year"), "year"),
            ["year", "number", "total"],
            id="with itself",
        ),
        pytest.param(lambda t: t.select("year").union(t.select("number")), ["year", "number"], id="a union"),
    ],
)
def test_the_plan_tells_what_is_needed(
    spark: "SparkSession", query: "Callable[[DataFrame], DataFrame]", expected: list[str]
) -> None:
    stand_in = spark.createDataFrame(spark.sparkContext.emptyRDD(), SCHEMA)
    assert needed_columns(query(stand_in), COLUMNS) == expected


def test_what_other_tables_need_does_not_count(spark: "SparkSession") -> None:
    stand_in = spark.createDataFrame(spark.sparkContext.emptyRDD(), SCHEMA)
    other = spark.createDataFrame(spark.sparkContext.emptyRDD(), "year int, tags string")
    assert needed_columns(stand_in.select("year").join(other, "year"), COLUMNS) == ["year"]
