"""Canonical bytes of rows, and digests by shard: equal exactly where the rows are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.collection_samples import given_records, given_rules

from tidemark.collection.model.row import CollectionRow, canonical_bytes, key_bytes
from tidemark.collection.model.row_digests import digests_of, no_digests, sum_of
from tidemark.collection.model.rows import rows_of
from tidemark.outputs.model.digest import ShardDigest, shard_of

pytestmark = pytest.mark.unit

SHARDS = 3
ROW = CollectionRow((b"a",), (b"Ann", None), 1_000, 7, 1_002, False, "accounts", 0, 5, 2)

cells = st.sampled_from([b"", b"a", b"ab", b"\xff\xff\xff\xff"])


def in_its_shard(row):
    return row._replace(shard=shard_of(key_bytes(row.key), SHARDS))


rows = st.builds(
    CollectionRow,
    key=st.lists(cells, min_size=1, max_size=2).map(tuple),
    values=st.lists(st.none() | cells, max_size=2).map(tuple),
    t=st.integers(0, 3),
    message_id=st.integers(0, 3),
    write_time=st.integers(0, 3),
    gone=st.booleans(),
    topic=st.sampled_from(["a", "ab"]),
    partition=st.integers(0, 1),
    offset=st.integers(0, 1),
    shard=st.just(0),
).map(in_its_shard)


def test_the_canonical_bytes_of_a_row_never_change():
    assert canonical_bytes(ROW) == (
        b"\0\0\0\1" b"\0\0\0\1a"
        b"\0\0\0\0\0\0\x03\xe8" b"\0\0\0\0\0\0\0\7" b"\0"
        b"\0\0\0\2" b"\0\0\0\3Ann" b"\xff\xff\xff\xff"
        b"\0\0\0\x08accounts" b"\0\0\0\0" b"\0\0\0\0\0\0\0\5"
    )  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        ROW._replace(key=(b"b",)),
        ROW._replace(values=(b"Ann", b"")),
        ROW._replace(values=(None, b"Ann")),
        ROW._replace(values=(b"Ann",)),
        ROW._replace(t=1_001),
        ROW._replace(message_id=8),
        ROW._replace(gone=True),
        ROW._replace(topic="account"),
        ROW._replace(partition=1),
        ROW._replace(offset=6),
    ],
)
def test_a_row_that_differs_has_other_bytes(other):
    assert canonical_bytes(other) != canonical_bytes(ROW)


def test_the_shard_and_the_write_time_are_not_part_of_a_row():
    assert canonical_bytes(ROW._replace(shard=0, write_time=9)) == canonical_bytes(ROW)


@given(rows, rows)
def test_bytes_are_equal_exactly_where_rows_are(one, other):
    alike = one._replace(write_time=0) == other._replace(write_time=0)
    assert (canonical_bytes(one) == canonical_bytes(other)) is alike


@given(st.lists(rows), st.randoms())
def test_any_order_of_rows_has_the_same_digest(found, random):
    shuffled = list(found)
    random.shuffle(shuffled)
    assert digests_of(shuffled, SHARDS) == digests_of(found, SHARDS)


@given(st.lists(rows), st.integers(0, 10))
def test_the_digests_of_parts_add_up(found, cut):
    parts = [digests_of(found[:cut], SHARDS), digests_of(found[cut:], SHARDS)]
    assert sum_of(parts, SHARDS) == digests_of(found, SHARDS)


@given(st.lists(rows))
def test_the_sum_over_shards_does_not_depend_on_their_number(found):
    alone = [row._replace(shard=0) for row in found]
    assert sum(digests_of(found, SHARDS), ShardDigest()) == digests_of(alone, 1)[0]


def test_a_row_that_is_there_twice_counts_twice():
    once, twice = digests_of([ROW], SHARDS), digests_of([ROW, ROW], SHARDS)
    assert (once[2].count, twice[2].count) == (1, 2)
    assert once[2].total != twice[2].total


def test_no_rows_have_the_digest_of_nothing():
    assert digests_of([], 2) == no_digests(2) == sum_of([], 2)


def test_a_value_that_is_written_otherwise_has_the_same_digest():
    rules = given_rules(columns={"balance": "decimal", "tags": "set<text>"})
    one = rows_of(given_records((b"a", b'{"balance": 12.50, "tags": ["x", "y"]}')), rules).rows
    other = rows_of(given_records((b"a", b'{"tags": ["y", "x"], "balance": "12.5"}')), rules).rows
    assert digests_of(one, 4) == digests_of(other, 4)
