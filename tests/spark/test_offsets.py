"""Offset logs counted on Spark: entries and bytes per writer, of those that were asked for."""

from typing import TYPE_CHECKING

import pytest

from tidemark.delivery.offset_plan import ack_row
from tidemark.spark.offsets import Counted, collect_counts, count_entries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "kind string, name string, row string, body string"
ROWS = [
    ("writer", "orders/archive", "head", "{}"),
    ("writer", "orders/archive", "ns/orders", "4"),
    ("writer", "orders/archive", "acknowledged/00000000000000000004", "{}"),
    ("writer", "orders/archive", ack_row(2), "{}"),
    ("writer", "orders/archive", ack_row(3), '"ß"'),
    ("writer", "orders/cassandra", ack_row(2), "{}"),
    ("writer", "orders/new", "head", "{}"),
    ("writer", "invoices/archive", ack_row(2), "{}"),
    ("log", "orders/archive", ack_row(2), "{}"),
]


@pytest.fixture(scope="module")
def objects(spark: "SparkSession") -> "DataFrame":
    return spark.createDataFrame(ROWS, SCHEMA)


def test_entries_and_bytes_are_counted_per_writer(objects):
    names = ["orders/archive", "orders/cassandra", "orders/new"]
    assert collect_counts(count_entries(objects, names)) == [
        Counted("orders/archive", 2, 2 * len(ack_row(1)) + 2 + 4),
        Counted("orders/cassandra", 1, len(ack_row(1)) + 2),
    ]


def test_nobody_is_counted_who_was_not_asked_for(objects):
    assert collect_counts(count_entries(objects, [])) == []
