"""InsertOptions of a DataFrame become an INSERT, or are refused before anything is sent."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.support.cql_samples import USER_TYPES
from tests.support.table_samples import EVENTS, ORDERS, VISITS

from tidemark.cassandra.bulk.row_errors import ColumnMissing, CountersRefused, KeyMissing, RowRefused
from tidemark.cassandra.bulk.statements import InsertOptions, InsertStatement, Using
from tidemark.cassandra.cells import NULL, UNSET, bigint, blob, int_, text
from tidemark.cassandra.scan.columns import TypeMismatch
from tidemark.cassandra.table import Column, UnknownColumn

pytestmark = pytest.mark.unit

KEY = {"customer": pa.string(), "year": pa.int32(), "number": pa.int64()}


def insert(columns: InsertOptions | None = None, **fields: pa.DataType) -> InsertStatement:
    return InsertStatement.of(ORDERS, pa.schema(list(fields.items())), columns or InsertOptions())


def test_what_has_a_fixed_width_stands_together() -> None:
    assert insert(**KEY, Note=pa.string(), placed=pa.timestamp("us", tz="UTC")).query == (
        'INSERT INTO shop.orders (year, number, placed, customer, "Note") VALUES (?, ?, ?, ?, ?)'
    )


def test_a_number_for_all_rows_stands_in_the_statement() -> None:
    query = insert(InsertOptions({Using.TIMESTAMP: 5, Using.TTL: 60}), **KEY).query
    assert query.endswith("VALUES (?, ?, ?) USING TIMESTAMP 5 AND TTL 60")


def test_each_row_may_have_its_own_write_time_and_life() -> None:
    columns = InsertOptions({Using.TIMESTAMP: "at", Using.TTL: "life"})
    schema = pa.schema([("id", pa.int32()), ("life", pa.int32()), ("at", pa.int64())])
    found = InsertStatement.of(EVENTS, schema, columns)
    assert found.query == "INSERT INTO shop.events (id) VALUES (?) USING TIMESTAMP ? AND TTL ?"
    batch = pa.RecordBatch.from_pylist([{"id": 1, "life": 60, "at": 5}, {"id": 2}], schema)
    assert found.rows(batch) == [int_(1) + bigint(5) + int_(60), int_(2) + UNSET + UNSET]


@pytest.mark.parametrize(("ignore_nulls", "absent"), [(True, UNSET), (False, NULL)])
def test_null_leaves_a_column_alone_or_removes_what_it_has(ignore_nulls: bool, absent: bytes) -> None:
    schema = pa.schema([("id", pa.int32()), ("payload", pa.string())])
    found = InsertStatement.of(EVENTS, schema, InsertOptions(ignore_nulls=ignore_nulls))
    assert found.rows(pa.RecordBatch.from_pylist([{"id": 1}], schema)) == [int_(1) + absent]


def test_columns_are_found_by_name() -> None:
    found = InsertStatement.of(
        EVENTS, pa.schema([("payload", pa.string()), ("id", pa.int32())]), InsertOptions()
    )
    batch = pa.RecordBatch.from_pylist([{"payload": "a", "id": 1}])
    assert found.rows(batch.cast(pa.schema([("payload", pa.string()), ("id", pa.int32())]))) == [
        int_(1) + text("a")
    ]


def test_a_row_without_its_whole_key_is_refused() -> None:
    with pytest.raises(KeyMissing, match="the rows have no year, number") as refused:
        insert(customer=pa.string())
    assert refused.value.key == ("customer", "year", "number")


def test_a_column_that_the_table_has_not_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="Did you mean `Note`"):
        insert(**KEY, note=pa.string())


def test_a_type_that_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeMismatch):
        insert(**{**KEY, "year": pa.int64()})


def test_a_write_time_is_a_number() -> None:
    with pytest.raises(TypeMismatch):
        insert(InsertOptions({Using.TIMESTAMP: "at"}), **KEY, at=pa.string())


def test_an_option_that_names_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(ColumnMissing, match=r"names the column `lfie`.*Did you mean `life`"):
        insert(InsertOptions({Using.TTL: "lfie"}), **KEY, life=pa.int32())


@pytest.mark.parametrize(
    ("row", "column", "problem"),
    [
        pytest.param({"payload": "a"}, "id", "null", id="null in the key"),
    ],
)
def test_a_value_that_cannot_be_written_is_refused_by_column(
    row: dict[str, str], column: str, problem: str
) -> None:
    schema = pa.schema([("id", pa.int32()), ("payload", pa.string())])
    with pytest.raises(RowRefused) as refused:
        InsertStatement.of(EVENTS, schema, InsertOptions()).rows(pa.RecordBatch.from_pylist([row], schema))
    assert (refused.value.table, refused.value.column, refused.value.problem) == (
        "shop.events",
        column,
        problem,
    )


@pytest.mark.parametrize("fields", [["page", "visits"], ["page"]])
def test_counters_are_refused_in_a_sentence(fields: list[str]) -> None:
    """Item 25: also where only the key is given, which a table of counters takes by no INSERT."""
    types = {"page": pa.string(), "visits": pa.int64()}
    with pytest.raises(CountersRefused, match=r"shop\.visits is a table of counters"):
        InsertStatement.of(VISITS, pa.schema([(name, types[name]) for name in fields]), InsertOptions())


def test_types_of_a_keyspace_s_own_are_written() -> None:
    table = replace(EVENTS, columns=(*EVENTS.columns, Column("home", "address")), user_types=USER_TYPES)
    schema = pa.schema(
        [("id", pa.int32()), ("home", pa.struct([("number", pa.int32()), ("street", pa.string())]))]
    )
    batch = pa.RecordBatch.from_pylist([{"id": 1, "home": {"number": 5}}], schema)
    assert InsertStatement.of(table, schema, InsertOptions()).rows(batch) == [int_(1) + blob(NULL + int_(5))]


@pytest.mark.parametrize(
    "error",
    [
        KeyMissing("t", ("a",), ("a", "b")),
        ColumnMissing("t", "a", ("b",)),
        RowRefused("t", "a", "int", "null"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_the_way_from_a_task(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
