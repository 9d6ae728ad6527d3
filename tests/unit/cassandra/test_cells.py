"""Cells are byte for byte what the driver would send."""

import struct
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from cassandra import cqltypes
from cassandra.util import Date, Duration
from hypothesis import given
from hypothesis import strategies as st

from tidemark.cassandra import cells
from tidemark.cassandra.cells import NULL, UNSET

pytestmark = pytest.mark.unit

PROTOCOL = 5
TEXT_SET = cqltypes.SetType.apply_parameters([cqltypes.UTF8Type])
TEXT_MAP = cqltypes.MapType.apply_parameters([cqltypes.UTF8Type, cqltypes.UTF8Type])

INTS = st.integers(-(2**31), 2**31 - 1)
BIGINTS = st.integers(-(2**63), 2**63 - 1)
DURATIONS = st.one_of(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)),
    st.tuples(st.integers(-(2**31), 0), st.integers(-(2**31), 0), st.integers(-(2**63), 0)),
)

ENCODERS: list[Callable[..., bytes]] = [
    cells.text,
    cells.blob,
    cells.int_,
    cells.bigint,
    cells.timestamp,
    cells.date,
    cells.uuid,
    cells.duration,
    cells.text_set,
    cells.text_map,
]
COLUMNS: list[tuple[Callable[..., list[bytes]], Callable[..., bytes], st.SearchStrategy[Any]]] = [
    (cells.texts, cells.text, st.text()),
    (cells.ints, cells.int_, INTS),
    (cells.bigints, cells.bigint, BIGINTS),
    (cells.timestamps, cells.timestamp, BIGINTS),
]


def as_the_driver(cql_type: Any, value: Any) -> bytes:
    data = cql_type.to_binary(value, PROTOCOL)
    return struct.pack(">i", len(data)) + data


@given(st.text())
def test_text(value: str) -> None:
    assert cells.text(value) == as_the_driver(cqltypes.UTF8Type, value)


@given(st.binary())
def test_blob(value: bytes) -> None:
    assert cells.blob(value) == as_the_driver(cqltypes.BytesType, value)


@given(INTS)
def test_int(value: int) -> None:
    assert cells.int_(value) == as_the_driver(cqltypes.Int32Type, value)


@given(BIGINTS)
def test_bigint(value: int) -> None:
    assert cells.bigint(value) == as_the_driver(cqltypes.LongType, value)


@given(BIGINTS)
def test_timestamp(value: int) -> None:
    assert cells.timestamp(value) == as_the_driver(cqltypes.DateType, value)


@given(st.dates())
def test_date(value: date) -> None:
    assert cells.date(value) == as_the_driver(cqltypes.SimpleDateType, Date(value))


@given(st.uuids())
def test_uuid(value: Any) -> None:
    assert cells.uuid(value) == as_the_driver(cqltypes.UUIDType, value)


@given(st.uuids())
def test_a_uuid_may_come_as_its_bytes(value: Any) -> None:
    assert cells.uuid(value.bytes) == cells.uuid(value)


@given(DURATIONS)
def test_duration(value: tuple[int, int, int]) -> None:
    assert cells.duration(value) == as_the_driver(cqltypes.DurationType, Duration(*value))


@given(st.lists(st.text(), unique=True))
def test_a_set_of_texts_keeps_the_order_it_comes_in(values: list[str]) -> None:
    assert cells.text_set(values) == as_the_driver(TEXT_SET, values)


@given(st.dictionaries(st.text(), st.text()))
def test_a_map_of_texts_keeps_the_order_it_comes_in(values: dict[str, str]) -> None:
    assert cells.text_map(values) == as_the_driver(TEXT_MAP, values)


@pytest.mark.parametrize("encode", [cells.text_set, cells.text_map])
def test_an_empty_collection_is_not_absent(encode: Callable[..., bytes]) -> None:
    assert encode({}) == b"\x00\x00\x00\x04\x00\x00\x00\x00"


@pytest.mark.parametrize("encode", ENCODERS)
def test_none_is_unset(encode: Callable[..., bytes]) -> None:
    assert encode(None) == UNSET


@pytest.mark.parametrize("encode", ENCODERS)
def test_none_is_null_where_the_caller_says_so(encode: Callable[..., bytes]) -> None:
    assert encode(None, NULL) == NULL


@pytest.mark.parametrize(("column", "single", "values"), COLUMNS)
@given(st.data())
def test_a_column_is_its_cells(column: Any, single: Any, values: Any, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.none() | values))
    assert column(drawn, NULL) == [single(value, NULL) for value in drawn]


def test_columns_become_rows() -> None:
    assert cells.rows(cells.texts(["a", None]), cells.ints([1, 2])) == [
        b"\x00\x00\x00\x01a\x00\x00\x00\x04\x00\x00\x00\x01",
        UNSET + b"\x00\x00\x00\x04\x00\x00\x00\x02",
    ]


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        cells.rows(cells.texts(["a", "b"]), cells.ints([1]))


@pytest.mark.parametrize(
    ("encode", "value"),
    [
        (cells.int_, 2**31),
        (cells.bigint, 2**63),
        (cells.timestamp, 2**63),
        (cells.text, "\ud800"),
        (cells.uuid, b"too short"),
        (cells.duration, (0, 0, 2**63)),
        (cells.duration, (0, 0, -(2**63) - 1)),
        (cells.text_set, ["a", None]),
        (cells.text_map, {"a": None}),
    ],
)
def test_what_does_not_fit_is_refused(encode: Callable[..., bytes], value: Any) -> None:
    with pytest.raises((struct.error, ValueError, OverflowError, AttributeError)):
        encode(value)
