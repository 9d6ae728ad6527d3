"""Columns of cells are, as Arrow, what the driver would have read from them."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cql_samples import (
    ALL,
    COLLECTIONS,
    MOST_MILLISECONDS,
    PROTOCOL,
    SCALARS,
    USER_TYPES,
    Sample,
)

from tidemark.cassandra.cql_types import arrow_type, parse_type
from tidemark.cassandra.scan import raw_column
from tidemark.cassandra.scan.arrow_cells import DoesNotFit, decode

pytestmark = pytest.mark.unit

by_type = pytest.mark.parametrize("sample", ALL, ids=lambda sample: sample.text)


@by_type
@settings(max_examples=20)
@given(st.data())
def test_values_read_are_the_driver_s(sample: Sample, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | sample.values, min_size=1, max_size=6))
    array = decode(sample.cql_type, [sample.cell(value) for value in values])
    assert array.type == arrow_type(sample.cql_type)
    assert sample.read(array) == values
    array.validate(full=True)


@by_type
def test_a_column_without_a_value_is_null_all_over(sample: Sample) -> None:
    array = decode(sample.cql_type, [None, None])
    assert (array.type, array.null_count) == (arrow_type(sample.cql_type), 2)


@by_type
def test_a_column_without_a_row_is_empty(sample: Sample) -> None:
    assert decode(sample.cql_type, []).to_pylist() == []


@pytest.mark.parametrize("sample", SCALARS, ids=lambda sample: sample.text)
def test_an_empty_cell_is_what_the_driver_says(sample: Sample) -> None:
    assert decode(sample.cql_type, [b"", None]).to_pylist()[0] == sample.driver.from_binary(b"", PROTOCOL)


@pytest.mark.parametrize("sample", COLLECTIONS, ids=lambda sample: sample.text)
def test_a_collection_of_nothing_is_not_null(sample: Sample) -> None:
    assert decode(sample.cql_type, [b"\0\0\0\0", b"", None]).to_pylist() == [[], None, None]


@pytest.mark.parametrize("few", [1, 10_000], ids=["numpy", "python"])
@settings(max_examples=25)
@given(values=st.lists(st.none() | st.lists(st.text(max_size=3), max_size=4), min_size=1, max_size=40))
def test_collections_are_read_the_same_side_by_side_and_one_by_one(few: int, values: list[Any]) -> None:
    sample = next(each for each in COLLECTIONS if each.text == "set<text>")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_column, "FEW", few)
        array = decode(sample.cql_type, [sample.cell(value) for value in values])
    assert array.to_pylist() == values


def test_an_element_may_be_null() -> None:
    cell = b"\0\0\0\2" + b"\xff\xff\xff\xff" + b"\0\0\0\1a"
    assert decode(parse_type("list<text>"), [cell]).to_pylist() == [[None, "a"]]


def test_not_a_number_is_one() -> None:
    found = decode(parse_type("double"), [b"\x7f\xf8" + bytes(6)]).to_pylist()[0]
    assert found != found


def test_a_decimal_may_have_another_precision() -> None:
    sample = next(each for each in SCALARS if each.text == "decimal")
    wanted = pa.decimal128(5, 2)
    assert str(decode(sample.cql_type, [b"\0\0\0\1\x0f"], wanted).to_pylist()[0]) == "1.50"


@pytest.mark.parametrize(
    ("type_name", "cell"),
    [
        pytest.param("timestamp", (MOST_MILLISECONDS + 1).to_bytes(8, "big"), id="a moment too late"),
        pytest.param("timestamp", (-MOST_MILLISECONDS - 2).to_bytes(8, "big", signed=True), id="too early"),
        pytest.param("text", b"\xff", id="text that is none"),
        pytest.param("decimal", b"\0\0\0\x13\x01", id="too many digits after the point"),
        pytest.param("varint", (10**38).to_bytes(17, "big"), id="too many digits"),
        pytest.param("bigint", bytes(4), id="too few bytes"),
    ],
)
def test_what_does_not_fit_is_refused(type_name: str, cell: bytes) -> None:
    with pytest.raises(DoesNotFit):
        decode(parse_type(type_name), [cell, None])


def test_a_counter_is_a_number() -> None:
    assert decode(parse_type("counter"), [b"\0\0\0\0\0\0\0\7", None]).to_pylist() == [7, None]


def test_fields_that_a_type_got_later_are_null() -> None:
    """Cells written before ALTER TYPE … ADD end early."""
    cells = [b"\0\0\0\1a", b"\0\0\0\1a\0\0\0\4\0\0\0\5", b""]
    assert decode(parse_type("address", USER_TYPES), cells).to_pylist() == [
        {"street": "a", "number": None},
        {"street": "a", "number": 5},
        {"street": None, "number": None},
    ]


@pytest.mark.parametrize(("name", "cell"), [("vector<float, 2>", b"\0" * 12), ("vector<text, 1>", b"\1a\1b")])
def test_a_vector_of_another_size_is_refused(name: str, cell: bytes) -> None:
    with pytest.raises(DoesNotFit, match="a vector of"):
        decode(parse_type(name), [cell])
