"""The statement that creates a table, and how an existing table differs from it."""

from dataclasses import replace

import pytest
from tests.support.table_samples import EVENTS, ORDERS

from tidemark.cassandra.schema.tables import create_table, differences
from tidemark.cassandra.table import Column, Role, Table

pytestmark = pytest.mark.unit


def with_column(table: Table, column: Column) -> Table:
    return replace(table, columns=(*table.columns, column))


def test_a_table_is_created_with_its_key_and_the_order_of_its_rows() -> None:
    assert create_table(ORDERS) == (
        "CREATE TABLE IF NOT EXISTS shop.orders (customer text, year int, number bigint, "
        '"Note" text, placed timestamp, tags set<text>, total decimal, '
        "PRIMARY KEY ((customer, year), number)) WITH CLUSTERING ORDER BY (number ASC)"
    )


def test_a_table_without_clustering_columns_has_no_order() -> None:
    assert create_table(EVENTS) == (
        "CREATE TABLE IF NOT EXISTS shop.events (id int, payload text, PRIMARY KEY ((id)))"
    )


def test_a_static_column_is_created_and_compared_as_one() -> None:
    static = with_column(ORDERS, Column("since", "date", Role.STATIC))
    regular = with_column(ORDERS, Column("since", "date"))
    assert "since date static" in create_table(static)
    assert list(differences(static, regular)) == ["its column `since` is date instead of date static"]


def test_a_table_does_not_differ_from_itself() -> None:
    assert list(differences(ORDERS, ORDERS)) == []


def test_every_difference_is_named() -> None:
    columns = tuple(
        replace(one, name="noted", type_name="int") if one.name == "Note" else one for one in ORDERS.columns
    )
    assert list(differences(ORDERS, replace(ORDERS, columns=columns))) == [
        "it has no column `Note` (text)",
        "its column `noted` (int) is not among the wanted ones",
    ]
