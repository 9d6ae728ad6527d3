"""Cells made from Arrow are byte for byte what the driver would send."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cql_samples import ALL, USER_TYPES, Sample, with_length

from tidemark.cassandra.bulk.arrow_rows import BoundColumn, CannotEncode, encode_rows
from tidemark.cassandra.cells import NULL, UNSET
from tidemark.cassandra.cql_types import parse_type

pytestmark = pytest.mark.unit

by_type = pytest.mark.parametrize("sample", ALL, ids=lambda sample: sample.text)


def encode(type_name: str, array: pa.Array, absent: bytes | None = UNSET) -> list[bytes]:
    return encode_rows([BoundColumn("column", parse_type(type_name, USER_TYPES), absent)], [array])


def expected(sample: Sample, value: Any, absent: bytes = UNSET) -> bytes:
    cell = sample.cell(value)
    return absent if cell is None else with_length(cell)


@by_type
@settings(max_examples=20)
@given(st.data())
def test_cells_written_are_the_driver_s(sample: Sample, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | sample.values, min_size=1, max_size=6))
    array = sample.array(values)
    assert encode(sample.text, array) == [expected(sample, value) for value in values]
    assert encode(sample.text, array.slice(1)) == [expected(sample, value) for value in values[1:]]


@by_type
@settings(max_examples=10)
@given(st.data())
def test_columns_become_rows(sample: Sample, data: st.DataObject) -> None:
    """Of fixed width or not, with nulls or not: the pieces of a row come in the order of the columns."""
    number = next(each for each in ALL if each.text == "int")
    numbers = data.draw(st.lists(number.values, min_size=3, max_size=3))
    values = data.draw(st.lists(st.none() | sample.values, min_size=3, max_size=3))
    targets = [
        BoundColumn(str(place), each.cql_type) for place, each in enumerate((number, number, sample, number))
    ]
    arrays = [number.array(numbers), number.array(numbers), sample.array(values), number.array(numbers)]
    assert encode_rows(targets, arrays) == [
        expected(number, n) * 2 + expected(sample, value) + expected(number, n)
        for n, value in zip(numbers, values, strict=True)
    ]


@by_type
def test_null_may_remove_what_is_there(sample: Sample) -> None:
    assert encode(sample.text, sample.array([None, None]), NULL) == [NULL, NULL]


def test_null_is_refused_where_it_must_not_be() -> None:
    with pytest.raises(CannotEncode, match="null"):
        encode("int", pa.array([1, None]), absent=None)


def test_no_rows_are_no_cells() -> None:
    assert encode("text", pa.array([], pa.string())) == []


def test_a_column_that_is_null_all_over_needs_no_type() -> None:
    assert encode("map<text, text>", pa.nulls(2)) == [UNSET, UNSET]


@pytest.mark.parametrize(
    ("type_name", "given", "usual"),
    [
        pytest.param("bigint", pa.array([1], pa.int8()), pa.array([1]), id="a smaller number"),
        pytest.param("double", pa.array([1.5], pa.float32()), pa.array([1.5]), id="a smaller float"),
        pytest.param("text", pa.array(["a"], pa.large_string()), pa.array(["a"]), id="a large text"),
        pytest.param("varint", pa.array([7]), pa.array([Decimal(7)]), id="a number for a varint"),
    ],
)
def test_what_fits_is_widened(type_name: str, given: pa.Array, usual: pa.Array) -> None:
    assert encode(type_name, given) == encode(type_name, usual)


@pytest.mark.parametrize(("micros", "millis"), [(1_999, 1), (0, 0), (-1, -1), (-1_000, -1), (-1_001, -2)])
def test_a_timestamp_loses_what_is_below_a_millisecond(micros: int, millis: int) -> None:
    moment = pa.array([micros]).view(pa.timestamp("us", tz="Europe/Prague"))
    assert encode("timestamp", moment) == encode("bigint", pa.array([millis]))


def test_fields_of_a_user_defined_type_go_by_name() -> None:
    turned = pa.array(
        [{"number": 5, "street": "x"}], pa.struct([("number", pa.int32()), ("street", pa.string())])
    )
    usual = pa.array(
        [{"street": "x", "number": 5}], pa.struct([("street", pa.string()), ("number", pa.int32())])
    )
    assert encode("address", turned) == encode("address", usual)


def test_a_uuid_may_be_in_upper_case() -> None:
    text = "6A1C4F9E-3D3B-4C8E-9D59-0D1B6A3F2E11"
    assert encode("uuid", pa.array([text])) == encode("uuid", pa.array([text.lower()]))


@pytest.mark.parametrize(
    ("type_name", "array"),
    [
        pytest.param("uuid", pa.array(["6a1c4f9e"]), id="a short uuid"),
        pytest.param("uuid", pa.array(["6a1c4f9e-3d3b-4c8e-9d59-0d1b6a3f2e1z"]), id="a uuid with a z"),
        pytest.param("uuid", pa.array(["6a1c4f9e03d3b-4c8e-9d59-0d1b6a3f2e11"]), id="a dash is missing"),
        pytest.param("ascii", pa.array(["ž"]), id="not ASCII"),
        pytest.param("inet", pa.array(["300.0.0.1"]), id="no address"),
        pytest.param("varint", pa.array([Decimal("1.5")]), id="a fraction"),
        pytest.param("list<int>", pa.array([[1, None]]), id="a null inside"),
        pytest.param("vector<int, 2>", pa.array([[1, None]], pa.list_(pa.int32())), id="a null in a vector"),
        pytest.param("vector<int, 2>", pa.array([[1, 2, 3]], pa.list_(pa.int32())), id="too long a vector"),
        pytest.param(
            "duration", pa.array([{"months": 1, "days": -1, "nanoseconds": 0}]), id="both signs in a duration"
        ),
    ],
)
def test_what_does_not_fit_is_refused(type_name: str, array: pa.Array) -> None:
    with pytest.raises(CannotEncode):
        encode(type_name, array)
