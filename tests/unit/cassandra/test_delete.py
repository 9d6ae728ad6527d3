"""A DataFrame of keys becomes a DELETE, or is refused before anything is deleted (item 25)."""

import pickle
from typing import Any

import pyarrow as pa
import pytest
from tests.support.table_samples import ORDERS, VISITS

from tidemark.cassandra.bulk.row_errors import (
    CountersRefused,
    KeyNotWhole,
    LifeOfNothing,
    NotOfTheKey,
    RowRefused,
)
from tidemark.cassandra.bulk.statements import DeleteStatement, Using
from tidemark.cassandra.cells import bigint, int_, text
from tidemark.cassandra.scan.columns import TypeMismatch

pytestmark = pytest.mark.unit

KEY = {"customer": pa.string(), "year": pa.int32(), "number": pa.int64()}


def delete(
    fields: dict[str, pa.DataType], using: dict[Using, Any] | None = None, ranges: bool = False
) -> DeleteStatement:
    return DeleteStatement.of(ORDERS, pa.schema(list(fields.items())), using or {}, ranges)


def test_a_row_is_deleted_by_its_whole_key() -> None:
    found = delete({"number": pa.int64(), "customer": pa.string(), "year": pa.int32()})
    assert found.query == "DELETE FROM shop.orders WHERE customer = ? AND year = ? AND number = ?"
    batch = pa.RecordBatch.from_pylist(
        [{"number": 3, "customer": "ann", "year": 2026}],
        pa.schema([("number", pa.int64()), ("customer", pa.string()), ("year", pa.int32())]),
    )
    assert found.rows(batch) == [text("ann") + int_(2026) + bigint(3)]


def test_each_delete_may_have_its_own_time() -> None:
    found = delete({**KEY, "at": pa.int64()}, {Using.TIMESTAMP: "at"})
    assert found.query.startswith("DELETE FROM shop.orders USING TIMESTAMP ? WHERE customer = ?")
    assert [target.name for target in found.targets] == ["at", "customer", "year", "number"]


def test_one_time_for_all_stands_in_the_statement() -> None:
    assert " USING TIMESTAMP 5 WHERE " in delete(KEY, {Using.TIMESTAMP: 5}).query


@pytest.mark.parametrize(
    ("names", "where"),
    [
        (["customer", "year"], "customer = ? AND year = ?"),
        (["customer", "year", "number"], "customer = ? AND year = ? AND number = ?"),
    ],
)
def test_ranges_are_deleted_by_the_beginning_of_their_key(names: list[str], where: str) -> None:
    assert delete({name: KEY[name] for name in names}, ranges=True).query.endswith(f" WHERE {where}")


@pytest.mark.parametrize(
    ("names", "ranges", "missing"),
    [
        pytest.param(["customer", "year"], False, ("number",), id="not whole"),
        pytest.param(["customer"], True, ("year",), id="part of the partition key"),
        pytest.param(["customer", "number"], True, ("year",), id="a gap"),
        pytest.param([], True, ("customer", "year"), id="nothing"),
    ],
)
def test_keys_that_are_not_whole_are_refused(
    names: list[str], ranges: bool, missing: tuple[str, ...]
) -> None:
    with pytest.raises(KeyNotWhole, match="delete_ranges") as refused:
        delete({name: KEY[name] for name in names}, ranges=ranges)
    assert refused.value.missing == missing


def test_whole_rows_are_not_taken_for_keys() -> None:
    with pytest.raises(NotOfTheKey, match="the rows have Note too"):
        delete({**KEY, "Note": pa.string()})


def test_a_life_is_refused() -> None:
    with pytest.raises(LifeOfNothing):
        delete(KEY, {Using.TTL: 60})


def test_another_type_is_refused() -> None:
    with pytest.raises(TypeMismatch):
        delete({**KEY, "year": pa.string()})


def test_null_in_a_key_is_refused() -> None:
    schema = pa.schema(list(KEY.items()))
    batch = pa.RecordBatch.from_pylist([{"customer": "ann", "number": 1}], schema)
    with pytest.raises(RowRefused, match="null for column `year`"):
        delete(KEY).rows(batch)


def test_counters_are_not_deleted() -> None:
    with pytest.raises(CountersRefused):
        DeleteStatement.of(VISITS, pa.schema([("page", pa.string())]), {}, ranges=False)


@pytest.mark.parametrize(
    "error",
    [
        CountersRefused("t"),
        KeyNotWhole("t", ("a",), ("a", "b")),
        LifeOfNothing("t"),
        NotOfTheKey("t", ("x",), ("a",)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_the_way_from_a_task(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
