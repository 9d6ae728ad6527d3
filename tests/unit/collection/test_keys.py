"""Keys of rows from keys of messages: taken as they are, or read from JSON objects."""

from struct import pack

import pytest
from tests.support.collection_samples import given_columns

from tidemark.collection.model.key_format import KeyFormat, usual_key_format
from tidemark.collection.model.keys import key_reader
from tidemark.collection.model.no_row import NoRow

pytestmark = pytest.mark.unit


def read(key, key_format=None, **types):
    columns = given_columns(**types)
    return key_reader(columns, key_format or usual_key_format(columns))(key)


@pytest.mark.parametrize(
    ("types", "key", "cells"),
    [
        ({"id": "text"}, "é".encode(), ("é".encode(),)),
        ({"id": "text"}, b'{"id": 1}', (b'{"id": 1}',)),
        ({"id": "ascii"}, b"a", (b"a",)),
        ({"id": "blob"}, b"\xff\x00", (b"\xff\x00",)),
        ({"id": "int"}, b'{"id": 7}', (pack(">i", 7),)),
        ({"id": "varint"}, b'{"id": "7"}', (b"\x07",)),
        ({"a": "text", "b": "int"}, b'{"b": 7, "a": "x"}', (b"x", pack(">i", 7))),
        ({"a": "text", "b": "int"}, b'{"b": 7, "a": ""}', (b"", pack(">i", 7))),
        ({"a": "blob", "b": "boolean"}, b'{"a": "AAE=", "b": true}', (b"\x00\x01", b"\x01")),
    ],
)
def test_a_key_that_can_be_read(types, key, cells):
    assert read(key, **types) == cells


@pytest.mark.parametrize(
    ("cql_type", "key_format", "key", "cells"),
    [
        ("text", KeyFormat.JSON, b'{"id": "x"}', (b"x",)),
        ("blob", KeyFormat.JSON, b'{"id": "AAE="}', (b"\x00\x01",)),
        ("int", KeyFormat.RAW, b"-7", (pack(">i", -7),)),
        ("bigint", KeyFormat.RAW, b"7", (pack(">q", 7),)),
        ("date", KeyFormat.RAW, b"1970-01-01", (pack(">I", 2**31),)),
    ],
)
def test_a_format_that_is_not_the_usual_one(cql_type, key_format, key, cells):
    assert read(key, key_format, id=cql_type) == cells


@pytest.mark.parametrize(
    ("types", "key", "said"),
    [
        ({"id": "text"}, None, "it has no key"),
        ({"id": "text"}, b"", "it has an empty key"),
        ({"id": "int"}, None, "it has no key"),
        ({"id": "text"}, b"a\xff", "its key is not UTF-8 at byte 1"),
        ({"id": "ascii"}, "é".encode(), 'its key does not fit column `id` (ascii): "é" has characters'),
        ({"id": "blob"}, b"x" * 65_536, "its key takes 65536 bytes, and Cassandra's limit is 65535"),
        ({"id": "int"}, b"7", "its key is not a JSON object but 7"),
        ({"id": "int"}, b"[7]", "its key is not a JSON object but a JSON list"),
        ({"id": "int"}, b"x7", "its key is not a JSON object (not JSON"),
        ({"id": "int"}, b'{"id": 7} {}', "its key is not a JSON object (not JSON: '{}' follows"),
        ({"id": "int"}, b"{}", 'its key has no field "id": it has none at all'),
        ({"id": "int"}, b'{"ID": 7}', 'its key has no field "id": it has "ID"'),
        ({"id": "int"}, b'{"id": null}', "column `id` of its key is null"),
        ({"id": "int"}, b'{"id": 7, "region": "eu"}', 'its key has the field "region", which is not a key'),
        ({"id": "int"}, b'{"id": 7.0}', "its key does not fit column `id` (int): 7.0 is not a whole number"),
        ({"id": "int", "n": "int"}, b'{"id": 7}', 'its key has no field "n"'),
        (
            {"a": "blob", "b": "blob"},
            b'{"a": "%s", "b": ""}' % (b"AAAA" * 21_845),
            "its key takes 65541 bytes",
        ),
    ],
)
def test_a_key_that_cannot_be_read(types, key, said):
    with pytest.raises(NoRow) as refusal:
        read(key, **types)
    assert said in str(refusal.value)


def test_a_field_of_a_json_key_may_not_be_the_whole_of_an_empty_key():
    with pytest.raises(NoRow, match="column `id` of its key is empty, which no partition key can be"):
        read(b'{"id": ""}', KeyFormat.JSON, id="text")


def test_the_text_of_a_refusal_can_be_stored():
    with pytest.raises(NoRow) as refusal:
        read(rb'{"id": 1, "\ud800": 2}', id="int")
    assert str(refusal.value).encode()
