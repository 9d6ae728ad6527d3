"""Keys from callers, and rows for them."""

from decimal import Decimal
from typing import Any

import pytest
from tests.support.collection_rows import ACCOUNTS, SEATS, place_of

from tidemark.cassandra.cql_types import parse_type
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.collection.tables.codec.python_rows import PythonRows, VisibleRow
from tidemark.collection.tables.errors import KeyRefused

pytestmark = pytest.mark.unit

SEATS_ROWS = PythonRows(place_of(SEATS, name="seats"))


def test_a_key_is_given_by_column_in_any_order() -> None:
    assert SEATS_ROWS.encode_key({"seat": 7, "hall": "main"}) == (b"main", b"\x00\x00\x00\x07")


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ({"hall": "main"}, "there is no value for `seat`"),
        ({"hall": "main", "seat": None}, "there is no value for `seat`"),
        ({"hall": "main", "seat": "seven"}, "'seven' is no value for `seat`"),
        ({"hall": "main", "seat": 2**31}, "2147483648 is no value for `seat`"),
        ({"hall": b"main".hex, "seat": 7}, "is no value for `hall`"),
        ({"hall": "main", "seat": 7, "row": 1}, "`row` is not a column of its key"),
    ],
)
def test_another_key_is_refused_with_the_columns_that_it_has(key: dict[str, Any], problem: str) -> None:
    with pytest.raises(KeyRefused, match=r"Nothing was read.*of the key: hall, seat") as refused:
        SEATS_ROWS.encode_key(key)
    assert problem in refused.value.problem


def test_a_row_is_its_values_by_column_the_key_first() -> None:
    row = PythonRows(place_of(ACCOUNTS)).decode(VisibleRow((b"ann",), (None, b"\x00\x00\x00\x05")))
    assert list(row.items()) == [("id", "ann"), ("owner", None), ("balance", 5)]


def test_a_decimal_keeps_every_digit() -> None:
    schema = CollectionSchema(
        (Column("id", parse_type("text")),), (Column("amount", parse_type("decimal")),), 1
    )
    unscaled = 123456789012345678901234567890123456789012345678901234567890
    cell = b"\x00\x00\x00\x0f" + unscaled.to_bytes(26, "big")
    found = PythonRows(place_of(schema)).decode(VisibleRow((b"a",), (cell,)))
    assert found["amount"] == Decimal("123456789012345678901234567890123456789012345.678901234567890")
