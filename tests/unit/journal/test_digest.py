"""Rows as digests: equal when a reader cannot tell the columns apart, and honest about which ones differ."""

from typing import Any

import pytest

from tidemark.journal.codec.json_text import ordered
from tidemark.journal.digest import COLUMNS, changed_columns, overwritten, row_digest, source_of

pytestmark = pytest.mark.unit

ROW: dict[str, Any] = {
    "partition": 3,
    "offset": 17,
    "origin": "host",
    "version": "1.0",
    "tags": ("a", "b"),
    "metadata": '{"header":{"data":{"x":1,"y":2}},"payload":{}}',
    "payload_type": "json",
    "payload_txt": '{"n":1,"of":[1,2]}',
    "payload_bin": None,
    "headers": {"trace": "1f", "span": "2e"},
}


def digest(**changes: Any) -> bytes:
    return row_digest(**ROW | changes)


@pytest.mark.parametrize(
    "same",
    [
        {"payload_txt": '{"of": [1.0, 2], "n": 1e0}'},
        {"metadata": '{"payload":{},"header":{"data":{"y":2,"x":1}}}'},
        {"tags": {"b", "a"}},
        {"headers": {"span": "2e", "trace": "1f"}},
    ],
    ids=["json in another order and form", "metadata in another order", "tags", "headers"],
)
def test_what_a_reader_cannot_tell_is_the_same(same: dict[str, Any]) -> None:
    assert digest(**same) == digest()


def of_metadata(expire_after: str) -> bytes:
    return digest(metadata=f'{{"header":{{}},"payload":{{"expireAfter":{expire_after},"data":1}}}}')


def test_tables_of_earlier_versions_are_not_taken_for_damaged() -> None:
    """Item 1: they have ``1 day`` where the producer said ``24 hours``, which is as long."""
    assert of_metadata('"24 hours"') == of_metadata('"1 day"')


@pytest.mark.parametrize("other", ['"25 hours"', '"soon"', "86400000000000", "null"])
def test_another_length_of_life_is_a_difference(other: str) -> None:
    assert changed_columns(of_metadata('"24 hours"'), of_metadata(other)) == ("metadata",)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("partition", 4),
        ("offset", 18),
        ("origin", None),
        ("version", "1.1"),
        ("tags", ("a",)),
        ("tags", None),
        ("metadata", None),
        ("payload_txt", '{"n":2,"of":[1,2]}'),
        ("payload_txt", '{"n":1,"of":[2,1]}'),
        ("payload_txt", "not json"),
        ("payload_bin", b""),
        ("headers", {"trace": "1f"}),
        ("headers", {"trace": "2e", "span": "1f"}),
    ],
)
def test_every_changed_column_is_named(column: str, value: Any) -> None:
    assert changed_columns(digest(), digest(**{column: value})) == (column,)


def test_text_is_compared_as_it_is() -> None:
    text = {"payload_type": "text"}
    assert digest(**text, payload_txt="{ }") != digest(**text, payload_txt="{}")


@pytest.mark.parametrize("column", ["tags", "headers"])
def test_an_empty_collection_is_none(column: str) -> None:
    assert digest(**{column: ()}) == digest(**{column: None})


def test_a_digest_says_where_its_row_comes_from() -> None:
    assert source_of(digest()) == (3, 17)
    assert source_of(digest(partition=None, offset=None)) == (-1, -1)


def test_a_row_written_over_another_leaves_what_it_has_nothing_for() -> None:
    assert overwritten(digest(), digest(origin=None, offset=18)) == digest(offset=18)
    assert overwritten(digest(), digest(tags=())) == digest(tags=())


def test_text_that_is_left_of_a_row_with_another_type_does_not_count() -> None:
    binary = {"payload_type": "binary", "payload_bin": b"x"}
    both = overwritten(digest(), digest(**binary, payload_txt=None))
    assert changed_columns(both, digest(**binary)) == ()
    assert changed_columns(both, digest(**binary, payload_txt="anything")) == ()
    assert changed_columns(both, digest()) == ("payload_type", "payload_bin")


def test_the_columns_are_those_of_the_table() -> None:
    assert set(COLUMNS) == set(ROW)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":{"c":2,"d":3}}', ' {"b":{"d":3,"c":2},"a":1} '),
        ("[100000000000000000000]", "[1e20]"),
        ('{"b":123456789012345678901,"a":1.50}', '{"a":1.5,"b":123456789012345678901.0}'),
        ('{"a":1,"a":2}', '{"a":2}'),
    ],
)
def test_json_of_the_same_value_is_the_same(one: str, other: str) -> None:
    assert ordered(one.encode()) == ordered(other.encode())
