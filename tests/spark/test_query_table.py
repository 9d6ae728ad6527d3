"""Which columns of a table a query needs, by Spark's own plan: no Cassandra takes part (item 25)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tidemark.spark.source.query_table import needed_columns, stand_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = StructType(
    [
        StructField("customer", StringType()),
        StructField("year", IntegerType()),
        StructField("number", LongType()),
        StructField("tags", ArrayType(StringType())),
        StructField("total", DecimalType(10, 2)),
        StructField("home", StructType([StructField("zip", IntegerType())])),
    ]
)
COLUMNS = ["customer", "year", "number", "tags", "total", "home"]


def given_table(spark: "SparkSession") -> "DataFrame":
    return stand_in(spark, SCHEMA)


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
    assert needed_columns(query(given_table(spark)), COLUMNS) == expected


def test_what_other_tables_need_does_not_count(spark: "SparkSession") -> None:
    other = spark.range(3).selectExpr("CAST(id AS int) AS year", "'x' AS tags")
    assert needed_columns(given_table(spark).select("year").join(other, "year"), COLUMNS) == ["year"]


def test_a_query_that_reads_no_row_needs_all_columns(spark: "SparkSession") -> None:
    assert needed_columns(given_table(spark).where("1 = 2").select("year"), COLUMNS) == COLUMNS


def test_the_plan_of_a_wide_table_is_shown_whole(spark: "SparkSession") -> None:
    columns = [f"c{number}" for number in range(60)]
    wide = stand_in(spark, StructType([StructField(name, LongType()) for name in columns]))
    assert needed_columns(wide.select(columns[:50]), columns) == columns[:50]


def test_a_redacted_plan_counts_as_one_that_needs_all_columns(spark: "SparkSession") -> None:
    regex = "spark.sql.redaction.string.regex"
    spark.conf.set(regex, "tot[a-z]+")
    try:
        assert needed_columns(given_table(spark).select("total"), COLUMNS) == COLUMNS
    finally:
        spark.conf.unset(regex)


def test_a_column_may_have_any_name(spark: "SparkSession") -> None:
    columns = ["a.b", "with `quotes`", "__tidemark_0__", "x#1"]
    table = stand_in(spark, StructType([StructField(name, LongType()) for name in columns]))
    assert needed_columns(table.select("`a.b`", "`x#1`"), columns) == ["a.b", "x#1"]
