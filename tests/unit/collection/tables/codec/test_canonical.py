"""Stored cells get back the bytes of the rows, whose encoders put sets and maps into the order of bytes."""

from collections.abc import Sequence
from typing import Any

import pytest

from tidemark.cassandra.cql_types import CqlKind, CqlType, parse_type
from tidemark.cassandra.python_values import PythonType
from tidemark.collection.model.values.encoders import encoder_of
from tidemark.collection.tables.codec.canonical import canonical_of

pytestmark = pytest.mark.unit

CASES: Sequence[tuple[str, Any, Any]] = [
    ("set<int>", [300, -1, 3], [-1, 3, 300]),
    ("set<int>", [], []),
    ("map<int, text>", [[1, "a"], [-1, ""]], {-1: "", 1: "a"}),
    ("map<int, text>", [], {}),
    ("list<set<int>>", [[1, -1], []], [[-1, 1], []]),
    ("map<text, list<set<int>>>", {"a": [[1, -1]]}, {"a": [[-1, 1]]}),
    ("map<int, set<int>>", [[2, [1, -1]], [-2, []]], {-2: [], 2: [-1, 1]}),
    ("tuple<int, set<int>, text>", [None, [1, -1], ""], (None, [-1, 1], "")),
    ("vector<set<int>, 2>", [[1, -1], []], [[-1, 1], []]),
    ("vector<list<set<bigint>>, 1>", [[[*range(40), -1]]], [[[-1, *range(40)]]]),
]
"""A type, a value as JSON has it, and the same value in the order in which Cassandra stores it."""


@pytest.mark.parametrize(("text", "json", "stored"), CASES)
def test_a_stored_cell_becomes_the_bytes_of_the_row(text: str, json: Any, stored: Any) -> None:
    cql_type = parse_type(text)
    restore = canonical_of(cql_type)
    assert restore is not None
    written = encoder_of(cql_type)(json)
    assert restore(PythonType(cql_type).encode(stored)) == written
    assert restore(written) == written


def test_a_tuple_that_ends_early_keeps_its_end() -> None:
    restore = canonical_of(parse_type("tuple<set<int>, int>"))
    assert restore is not None
    cell = PythonType(parse_type("tuple<set<int>>")).encode(([1],))
    assert restore(cell) == cell


@pytest.mark.parametrize("text", ["text", "decimal", "list<int>", "tuple<int, text>", "vector<float, 3>"])
def test_what_has_no_set_and_no_map_is_as_it_was(text: str) -> None:
    assert canonical_of(parse_type(text)) is None


def test_every_type_that_has_elements_is_looked_into() -> None:
    element = parse_type("set<int>")
    nested = {CqlKind.LIST: 1, CqlKind.SET: 1, CqlKind.MAP: 2, CqlKind.TUPLE: 1, CqlKind.VECTOR: 1}
    for kind, count in nested.items():
        assert canonical_of(CqlType(kind, (element,) * count, size=1)) is not None
