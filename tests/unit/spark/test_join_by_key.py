"""Rows of a DataFrame and rows of a table put side by side by key (item 25)."""

import pickle
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from tests.support.table_samples import ORDERS

from tidemark.cassandra.scan.columns import TypeMismatch
from tidemark.cassandra.table import Column, Role, Table, UnknownColumn
from tidemark.spark.source.errors import JoinRefused
from tidemark.spark.source.join_by_key import Join, KeyJoin

pytestmark = pytest.mark.unit

SCHEMA = pa.schema([("who", pa.string()), ("year", pa.int32()), ("mark", pa.string())])
ON = {"who": "customer", "year": "year"}


def join(
    on: dict[str, str] | None = None,
    columns: list[str] | None = None,
    how: Join = Join.INNER,
    schema: pa.Schema = SCHEMA,
) -> KeyJoin:
    return KeyJoin.of(ORDERS, schema, on or ON, columns, how)


def rows(*given: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], SCHEMA)


def found(join: KeyJoin, *given: tuple[Any, ...]) -> pa.Table:
    names = join.selected.columns
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in given], join.selected.schema)


ROWS = rows(("ann", 2026, "x"), ("bob", 2026, "y"), (None, 2026, "z"), ("ann", 2026, "again"))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Join.INNER, [("x", 1), ("x", 2), ("again", 1), ("again", 2)]),
        (Join.LEFT, [("x", 1), ("x", 2), ("y", None), ("z", None), ("again", 1), ("again", 2)]),
    ],
)
def test_each_row_comes_with_all_rows_of_its_key(how: Join, expected: list[Any]) -> None:
    by_key = join(columns=["number", "tags"], how=how)
    there = found(by_key, ("ann", 2026, 1, ["a"]), ("ann", 2026, 2, None))
    result = by_key.joined(ROWS, by_key.keys(ROWS), there)
    assert result.column_names == ["who", "year", "mark", "number", "tags"]
    assert list(zip(result["mark"].to_pylist(), result["number"].to_pylist(), strict=True)) == expected


def test_nothing_found_is_no_row_or_null() -> None:
    for how, count in ((Join.INNER, 0), (Join.LEFT, 4)):
        by_key = join(columns=["number"], how=how)
        result = by_key.joined(ROWS, by_key.keys(ROWS), found(by_key))
        assert (result.num_rows, result["number"].null_count) == (count, count)


def test_keys_are_what_the_driver_takes() -> None:
    text = "6A1C4F9E-3D3B-4C8E-9D59-0D1B6A3F2E11"
    table = Table(
        "shop",
        "records",
        (Column("id", "uuid", Role.PARTITION_KEY), Column("at", "timestamp", Role.CLUSTERING)),
    )
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", tz="Europe/Prague"))])
    by_key = KeyJoin.of(table, schema, {"id": "id", "at": "at"}, [], Join.INNER)
    given = pa.Table.from_pylist(
        [{"id": text, "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}, {"id": "none", "at": None}], schema
    )
    assert by_key.keys(given) == [(UUID(text), 1000), None]


def test_all_columns_but_the_key_come_if_none_is_named() -> None:
    assert list(join().wanted) == ["number", "Note", "placed", "tags", "total"]


def test_a_column_of_the_key_comes_if_it_is_named() -> None:
    by_key = join(columns=["customer", "number"])
    result = by_key.joined(ROWS, by_key.keys(ROWS), found(by_key, ("ann", 2026, 1)))
    assert result["customer"].to_pylist() == ["ann", "ann"]


@pytest.mark.parametrize(
    ("on", "columns", "said"),
    [
        ({"who": "customer"}, None, "`on` must name the whole partition key"),
        ({"who": "customer", "year": "number"}, None, "`on` must name the whole partition key"),
        ({"whom": "customer", "year": "year"}, None, "the DataFrame has no column `whom`"),
        ({"who": "customer", "year": "year"}, ["year"], "the DataFrame has year already"),
    ],
)
def test_a_join_that_cannot_be_meant_is_refused(
    on: dict[str, str], columns: list[str] | None, said: str
) -> None:
    with pytest.raises(JoinRefused, match=said):
        join(on, columns)


def test_a_key_of_another_type_is_refused() -> None:
    with pytest.raises(TypeMismatch):
        join(schema=pa.schema([("who", pa.int32()), ("year", pa.int32())]))


def test_a_key_that_cannot_be_looked_up_is_refused() -> None:
    table = Table("shop", "t", (Column("id", "double", Role.PARTITION_KEY),))
    with pytest.raises(JoinRefused, match="is a double, which cannot be looked up"):
        KeyJoin.of(table, pa.schema([("id", pa.float64())]), {"id": "id"}, None, Join.INNER)


def test_a_column_that_the_table_has_not_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="Did you mean `total`"):
        join(columns=["totl"])


def test_a_join_and_its_refusal_travel() -> None:
    assert pickle.loads(pickle.dumps(join())).wanted == join().wanted
    error = JoinRefused("t", "no.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
