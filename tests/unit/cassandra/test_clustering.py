"""Conditions on clustering columns become the restrictions that CQL has, and no others (item 25)."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.cassandra.scan.clustering import (
    MOST_VALUES,
    ColumnCondition,
    CqlOperator,
    Restricted,
    Restriction,
    restrict,
)
from tidemark.cassandra.table import Column, Role, Table

pytestmark = pytest.mark.unit

EQUAL, IN = CqlOperator.EQUAL, CqlOperator.IN
GREATER, AT_LEAST, LESS, AT_MOST = (
    CqlOperator.GREATER,
    CqlOperator.GREATER_OR_EQUAL,
    CqlOperator.LESS,
    CqlOperator.LESS_OR_EQUAL,
)
TEXT = "6a1c4f9e-3d3b-4c8e-9d59-0d1b6a3f2e11"


def clustered_by(*types: str) -> Table:
    """A table with clustering columns a, b, c of these types."""
    names = zip("abc", types, strict=False)
    clustering = [Column(name, type_name, Role.CLUSTERING) for name, type_name in names]
    return Table("shop", "t", (Column("key", "int", Role.PARTITION_KEY), *clustering, Column("x", "int")))


NUMBERS = clustered_by("int", "int", "int")


def restricted(table: Table, *conditions: tuple[str, CqlOperator, Any]) -> Restricted:
    given = [
        ColumnCondition(column, how, value if how is IN else (value,)) for column, how, value in conditions
    ]
    return restrict(table, given)


def texts(found: Restricted) -> list[tuple[str, Any]]:
    return [(str(each), each.value) for each in found.restrictions]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([("a", EQUAL, 1)], [("a = ?", 1)], id="equal"),
        pytest.param([("a", IN, (1, 2, 1))], [("a IN ?", [1, 2])], id="one of several"),
        pytest.param([("a", GREATER, 1), ("a", AT_MOST, 5)], [("a > ?", 1), ("a <= ?", 5)], id="a range"),
        pytest.param([("b", LESS, 9), ("a", EQUAL, 1)], [("a = ?", 1), ("b < ?", 9)], id="then a range"),
        pytest.param(
            [("a", IN, (1, 2)), ("b", EQUAL, 3), ("c", AT_LEAST, 4)],
            [("a IN ?", [1, 2]), ("b = ?", 3), ("c >= ?", 4)],
            id="all three",
        ),
        pytest.param([("a", IN, (1, 2, 3)), ("a", IN, (2, 3, 4))], [("a IN ?", [2, 3])], id="in both lists"),
        pytest.param([("a", IN, (1, 2)), ("a", EQUAL, 2)], [("a = ?", 2)], id="equal and in a list"),
        pytest.param([("b", EQUAL, 1)], [], id="not the first column"),
        pytest.param([("a", EQUAL, 1), ("c", EQUAL, 1)], [("a = ?", 1)], id="with a gap"),
        pytest.param([("a", GREATER, 1), ("b", EQUAL, 1)], [("a > ?", 1)], id="nothing after a range"),
        pytest.param([("key", EQUAL, 1), ("x", EQUAL, 1)], [], id="other columns"),
    ],
)
def test_the_form_that_cql_takes(conditions: list[Any], expected: list[Any]) -> None:
    found = restricted(NUMBERS, *conditions)
    assert texts(found) == expected
    assert not found.is_empty


def test_what_is_restricted_is_settled_and_what_is_not_is_left() -> None:
    found = restricted(NUMBERS, ("a", IN, (1, 2)), ("a", EQUAL, 1), ("b", GREATER, 3), ("c", EQUAL, 4))
    assert [(each.column, each.comparison) for each in found.settled] == [
        ("a", IN),
        ("a", EQUAL),
        ("b", GREATER),
    ]


def test_a_second_bound_of_the_same_side_is_left() -> None:
    found = restricted(NUMBERS, ("a", GREATER, 1), ("a", AT_LEAST, 3))
    assert (texts(found), len(found.settled)) == ([("a > ?", 1)], 1)


def test_conditions_that_no_value_meets_leave_nothing() -> None:
    assert restricted(NUMBERS, ("a", EQUAL, 1), ("a", EQUAL, 2)).is_empty
    assert restricted(clustered_by("uuid"), ("a", EQUAL, "no uuid")).is_empty


@pytest.mark.parametrize(("values", "is_taken"), [(MOST_VALUES, True), (MOST_VALUES + 1, False)])
def test_too_many_values_are_left(values: int, is_taken: bool) -> None:
    found = restricted(NUMBERS, ("a", IN, tuple(range(values))))
    assert (bool(found.restrictions), bool(found.settled)) == (is_taken, is_taken)


def test_values_of_several_columns_count_together() -> None:
    found = restricted(NUMBERS, ("a", IN, tuple(range(60))), ("b", IN, (1, 2)))
    assert [each.column for each in found.restrictions] == ["a"]


@pytest.mark.parametrize("type_name", ["float", "double", "duration", "frozen<list<int>>"])
@pytest.mark.parametrize("comparison", [EQUAL, LESS])
def test_types_whose_equality_is_another_are_left(type_name: str, comparison: CqlOperator) -> None:
    assert not restricted(clustered_by(type_name), ("a", comparison, 1)).restrictions


@pytest.mark.parametrize(
    ("type_name", "value", "driver"), [("uuid", TEXT, UUID(TEXT)), ("inet", "::1", "::1")]
)
def test_types_that_sort_otherwise_have_equality_only(type_name: str, value: str, driver: Any) -> None:
    table = clustered_by(type_name)
    assert texts(restricted(table, ("a", EQUAL, value))) == [("a = ?", driver)]
    assert not restricted(table, ("a", GREATER, value)).restrictions


@pytest.mark.parametrize(
    ("type_name", "value", "driver"),
    [
        ("text", "ž", "ž"),
        ("blob", bytearray(b"x"), b"x"),
        ("date", date(2026, 1, 2), date(2026, 1, 2)),
        ("decimal", Decimal("1.50"), Decimal("1.50")),
        ("varint", Decimal(7), 7),
        ("timestamp", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1000),
    ],
)
def test_values_are_what_the_driver_takes(type_name: str, value: Any, driver: Any) -> None:
    table = clustered_by(type_name)
    assert texts(restricted(table, ("a", EQUAL, value))) == [("a = ?", driver)]
    assert texts(restricted(table, ("a", GREATER, value))) == [("a > ?", driver)]


def test_a_fraction_is_no_whole_number() -> None:
    assert restricted(clustered_by("varint"), ("a", EQUAL, Decimal("1.5"))).is_empty


@given(
    st.integers(-3_000, 3_000),
    st.sampled_from([GREATER, AT_LEAST, LESS, AT_MOST]),
    st.integers(-4, 4),
)
def test_a_bound_between_two_cells_divides_them_the_same_way(
    micros: int, comparison: CqlOperator, cell: int
) -> None:
    """Cells are whole milliseconds; what they are compared with need not be."""
    holds = {
        GREATER: lambda one, other: one > other,
        AT_LEAST: lambda one, other: one >= other,
        LESS: lambda one, other: one < other,
        AT_MOST: lambda one, other: one <= other,
    }[comparison]
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    (found,) = restricted(clustered_by("timestamp"), ("a", comparison, moment)).restrictions
    assert holds(cell, found.value) == holds(cell * 1000, micros)
    (found,) = restricted(clustered_by("varint"), ("a", comparison, Decimal(micros) / 1000)).restrictions
    assert holds(cell, found.value) == holds(cell * 1000, micros)


@pytest.mark.parametrize(
    ("type_name", "conditions", "without_nulls"),
    [
        pytest.param("int", [(LESS, 5)], ["a"], id="an empty cell, which is read as null, lies below all"),
        pytest.param("int", [(LESS, 5), (GREATER, 1)], [], id="not above a lower end"),
        pytest.param("text", [(LESS, "5")], [], id="a text may be empty"),
    ],
)
def test_a_range_without_a_lower_end_may_have_rows_without_a_value(
    type_name: str, conditions: list[Any], without_nulls: list[str]
) -> None:
    found = restricted(clustered_by(type_name), *(("a", *each) for each in conditions))
    assert found.without_nulls == without_nulls
    assert len(found.settled) == len(conditions)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from([EQUAL, GREATER, AT_LEAST, LESS]), st.integers(1, 3)
        )
        | st.tuples(st.sampled_from("abc"), st.just(IN), st.lists(st.integers(1, 3)).map(tuple))
    )
)
def test_what_is_settled_would_be_restricted_the_same_by_itself(conditions: list[Any]) -> None:
    """Spark pushes filters again, and then only those that were settled."""
    found = restricted(NUMBERS, *conditions)
    again = restrict(NUMBERS, found.settled)
    assert again == found


def test_a_name_that_needs_quotes_has_them() -> None:
    assert str(Restriction("Note", EQUAL, "x")) == '"Note" = ?'
