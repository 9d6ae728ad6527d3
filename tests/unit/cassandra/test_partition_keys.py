"""Values of filters become partition keys where equal means the same partition."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from tidemark.cassandra.cql_types import parse_type
from tidemark.cassandra.scan.partition_keys import (
    MOST_KEYS,
    KeyGroup,
    PartitionKey,
    combine,
    key_groups,
    key_value,
    key_values,
)
from tidemark.cassandra.scan.raw_pages import Encoded

pytestmark = pytest.mark.unit

TEXT = "6a1c4f9e-3d3b-4c8e-9d59-0d1b6a3f2e11"
TIMED = "8b2f4cde-1c3a-11ef-9262-0242ac120002"


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("text", ["a", None, "a", "b"], ["a", "b"]),
        ("ascii", ["a", "ž"], ["a"]),
        ("blob", [bytearray(b"x")], [b"x"]),
        ("bigint", [1, 2, 1], [1, 2]),
        ("boolean", [True], [True]),
        ("date", [date(2026, 1, 2)], [date(2026, 1, 2)]),
        ("uuid", [TEXT, TEXT.upper(), "no uuid"], [UUID(TEXT)]),
        ("timeuuid", [TIMED, TEXT], [UUID(TIMED)]),
        ("inet", ["::1", "0:0::1", "no address"], ["::1"]),
        ("timestamp", [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], [1000]),
        ("timestamp", [datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)], [-1]),
        ("timestamp", [datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)], []),
        ("timestamp", [datetime(1970, 1, 1, 0, 0, 1)], [1000]),
    ],
)
def test_values_are_what_the_driver_takes_each_once(
    name: str, values: list[Any], expected: list[Any]
) -> None:
    assert key_values(parse_type(name), values) == expected


@pytest.mark.parametrize("name", ["float", "double", "decimal", "varint", "duration", "frozen<list<int>>"])
def test_values_that_are_equal_in_several_ways_are_not_looked_up(name: str) -> None:
    assert key_values(parse_type(name), [1]) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("uuid", TEXT.upper(), UUID(TEXT)),
        ("inet", "0:0::1", "::1"),
        ("uuid", "none", None),
        ("int", None, None),
    ],
)
def test_a_single_value_is_found_however_it_is_spelled(name: str, value: Any, expected: Any) -> None:
    assert key_value(parse_type(name), value) == expected


def test_a_key_of_several_columns_is_every_combination() -> None:
    found = combine(("a", "b"), {"b": [1, 2], "a": ["x"]})
    assert found == [PartitionKey(("x", 1)), PartitionKey(("x", 2))]


def test_part_of_a_key_is_no_key() -> None:
    assert combine(("a", "b"), {"a": [1]}) is None


def test_a_value_that_no_partition_can_have_leaves_none() -> None:
    assert combine(("a", "b"), {"a": [1], "b": []}) == []


@pytest.mark.parametrize(("count", "is_looked_up"), [(MOST_KEYS, True), (MOST_KEYS + 1, False)])
def test_too_many_partitions_are_not_looked_up_one_by_one(count: int, is_looked_up: bool) -> None:
    assert (combine(("a",), {"a": list(range(count))}) is not None) is is_looked_up


def test_a_partition_is_named_by_its_key() -> None:
    assert str(PartitionKey(("x", 1))) == "partition ('x', 1)"


def test_keys_of_one_column_are_grouped_for_one_statement_each() -> None:
    groups = list(key_groups([(b"a",), (b"b",), (b"a",), (b"c",)], most=2))
    assert groups == [KeyGroup((), (b"a", b"b")), KeyGroup((), (b"c",))]


def test_keys_of_several_columns_are_grouped_by_all_but_the_last() -> None:
    groups = list(key_groups([(b"main", b"1"), (b"side", b"1"), (b"main", b"2")]))
    assert groups == [KeyGroup((b"main",), (b"1", b"2")), KeyGroup((b"side",), (b"1",))]


def test_the_values_of_a_group_are_its_cells_with_the_last_ones_as_a_list() -> None:
    values = KeyGroup((b"main",), (b"1", b"22")).values
    assert values == (Encoded(b"main"), Encoded(b"\0\0\0\2\0\0\0\x011\0\0\0\x0222"))


def test_a_group_is_shown_by_its_first_keys() -> None:
    group = KeyGroup((b"m",), (b"1", b"2", b"3", b"4"))
    assert str(group) == "4 partitions (keys in hex: 6d 31, 6d 32, 6d 33, …)"
