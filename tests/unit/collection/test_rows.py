"""Rows of a batch of messages: their order and counts, transforms, and the message that ends a batch."""

import pickle
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.collection_samples import T, given_columns, given_records, given_rules

from tidemark.collection.model.column_types import column_type
from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.model.rows import MOST_REMEMBERED_BYTES, BadRow, RowBatch, RowRules, rows_of
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.delivery.transforms.chain import TransformFailed
from tidemark.outputs.model.digest import shard_of

pytestmark = pytest.mark.unit

FIVE = pack(">i", 5)


def keep(then, field="n", match=1):
    return {"skip": {"field": field, "operator": "==", "match": match, "then": then}}


def test_a_row_has_its_key_its_cells_and_where_it_comes_from():
    messages = given_records((b"a", b'{"owner": "Ann", "balance": 5}'), (b"b", None), partition=3)
    assert rows_of(messages, given_rules(shards=16)) == RowBatch(
        rows=[
            CollectionRow(
                key=(b"a",),
                values=(b"Ann", FIVE),
                t=T,
                message_id=100,
                write_time=T,
                gone=False,
                topic="accounts",
                partition=3,
                offset=10,
                shard=shard_of(b"\0\0\0\1a", 16),
            ),
            CollectionRow(
                key=(b"b",),
                values=(None, None),
                t=T,
                message_id=101,
                write_time=T + 1,
                gone=True,
                topic="accounts",
                partition=3,
                offset=11,
                shard=shard_of(b"\0\0\0\1b", 16),
            ),
        ],
        filtered=0,
        ignored=0,
    )


def test_every_message_has_its_own_row():
    messages = given_records((b"a", b'{"balance": 1}'), (b"a", b'{"balance": 2}'), (b"a", b'{"balance": 2}'))
    assert [row.message_id for row in rows_of(messages, given_rules()).rows] == [100, 101, 102]


def test_no_message_makes_no_row():
    assert rows_of(given_records(), given_rules()) == RowBatch([], 0, 0)


def test_a_collection_may_have_no_column_but_its_key():
    (row,) = rows_of(given_records((b"a", b"{}")), given_rules(columns={})).rows
    assert (row.key, row.values) == ((b"a",), ())


def test_the_shard_depends_on_the_whole_key_alone():
    rules = given_rules(key={"a": "text", "b": "text"}, shards=1_024)
    one, other = rows_of(
        given_records((b'{"a":"x","b":"yz"}', b"{}"), (b'{"b":"yz","a":"x"}', None)), rules
    ).rows
    assert one.shard == other.shard == shard_of(key_bytes((b"x", b"yz")), 1_024)
    assert key_bytes((b"x", b"yz")) != key_bytes((b"xy", b"z"))


@pytest.mark.parametrize("length", [1, MOST_REMEMBERED_BYTES, MOST_REMEMBERED_BYTES + 1, 60_000])
def test_a_key_that_comes_again_is_the_same_key_whether_it_is_remembered_or_not(length):
    key, rules = b"k" * length, given_rules(shards=1_024)
    rows = rows_of(given_records((key, b"{}"), (b"other", b"{}"), (key, None)), rules).rows
    rows += rows_of(given_records((key, b"{}")), rules).rows
    assert [row.key for row in rows] == [(key,), (b"other",), (key,), (key,)]
    assert {row.shard for row in rows if row.key == (key,)} == {shard_of(key_bytes((key,)), 1_024)}


def test_a_bad_key_is_refused_each_time_it_comes():
    rules = given_rules()
    problems = [rows_of(given_records((b"\xff", b"{}")), rules).bad.problem for _ in range(2)]
    assert problems[0] == problems[1] == "its key is not UTF-8 at byte 0"


def test_messages_of_other_namespaces_are_filtered():
    rules = given_rules(namespaces="^orders")
    assert rows_of(given_records((b"a", b"no JSON"), (None, None)), rules) == RowBatch([], 2, 0)


def test_the_lowest_bad_message_ends_the_batch():
    messages = given_records(
        (b"a", b"{}"),
        (b"b", b'{"balance": "x"}'),
        (None, b"{}"),
        (b"c", b"{}"),
    )
    batch = rows_of(messages, given_rules())
    assert [row.message_id for row in batch.rows] == [100]
    problem = 'column `balance` (int): "x" is not a whole number of 32 bits'
    assert batch.bad == BadRow(101, "accounts", 0, 11, problem)


def test_every_message_below_a_bad_one_is_counted_once():
    dropped = b'{"n": 0}'
    messages = given_records((b"a", b'{"n": 1}'), (b"a", dropped), (b"a", b'{"n": 1}'), (None, b'{"n": 1}'))
    batch = rows_of(messages, given_rules(transforms=[keep("drop")]))
    assert (batch.written, batch.filtered, batch.ignored, batch.bad.id) == (2, 0, 1, 103)


def test_transforms_make_the_columns():
    renamed = {"rename": {"fields": {"ownerName": "owner"}}}
    (row,) = rows_of(
        given_records((b"a", b'{"ownerName": "Ann"}')),
        given_rules(transforms=[renamed], columns={"owner": "text"}),
    ).rows
    assert row.values == (b"Ann",)


def test_transforms_cannot_touch_the_key():
    without_id = {"omit": {"fields": ["id"]}}
    (row,) = rows_of(given_records((b"a", b'{"id": "b"}')), given_rules(transforms=[without_id])).rows
    assert row.key == (b"a",)


def test_a_skipped_message_is_ignored_or_deletes_the_row():
    kept_not = given_records((b"a", b'{"n": 0}'))
    assert rows_of(kept_not, given_rules(transforms=[keep("drop")])) == RowBatch([], 0, 1)
    (row,) = rows_of(kept_not, given_rules(transforms=[keep("delete")])).rows
    assert (row.key, row.values, row.gone) == ((b"a",), (None, None), True)


def test_a_delete_by_a_transform_is_not_dropped_by_a_later_one():
    rules = given_rules(transforms=[keep("delete"), keep("drop", "region", "eu")])
    (row,) = rows_of(given_records((b"a", b'{"n": 0, "region": "us"}')), rules).rows
    assert row.gone


def test_a_delete_by_a_function_is_not_dropped_by_a_later_transform():
    function = {"function": {"path": "tests.support.collection_samples.deleted"}}
    rules = given_rules(transforms=[function, keep("drop")])
    assert [row.gone for row in rows_of(given_records((b"a", b'{"n": 0}')), rules).rows] == [True]


def test_a_message_without_a_value_passes_every_transform():
    assert rows_of(given_records((b"a", None)), given_rules(transforms=[keep("drop")])).written == 1


def test_a_transform_that_fails_makes_a_bad_message():
    function = {"function": {"path": "tests.support.collection_samples.exploding"}}
    batch = rows_of(given_records((b"a", b"{}")), given_rules(transforms=[function]))
    assert "transform 1 (function)" in batch.bad.problem
    assert "RuntimeError: no" in batch.bad.problem


def test_a_transform_that_is_not_here_is_no_fault_of_a_message(monkeypatch):
    function = {"function": {"path": "tests.support.collection_samples.exploding"}}
    rules = given_rules(transforms=[function])
    monkeypatch.delattr("tests.support.collection_samples.exploding")
    with pytest.raises(TransformFailed, match="has no `exploding`"):
        rows_of(given_records(), rules)


def test_another_format_reads_values_in_its_own_way():
    def read(value):
        if not value:
            raise ValueError("nothing in it")
        return {"owner": value.decode()}

    schema = CollectionSchema(given_columns(id="text"), (Column("owner", column_type("text")),), 1)
    rules = RowRules(schema, EnvelopeName.UPSERT, read=read)
    batch = rows_of(given_records((b"a", b"Ann"), (b"b", b"")), rules)
    assert [row.values for row in batch.rows] == [(b"Ann",)]
    assert batch.bad.problem == "its value cannot be read (nothing in it)"


def test_rules_survive_pickling_after_use():
    rules, messages = given_rules(transforms=[keep("delete")]), given_records((b"a", b'{"n": 0}'))
    wanted = rows_of(messages, rules)
    assert rows_of(messages, pickle.loads(pickle.dumps(rules))) == wanted


keys = st.none() | st.sampled_from([b"", b"a", b"b", b"\xff"])
values = st.none() | st.sampled_from(
    [b"{}", b'{"owner": "Ann"}', b'{"balance": 5}', b'{"balance": "x"}', b"x"]
)


@given(st.lists(st.tuples(keys, values), max_size=8), st.integers(0, 8))
def test_31_rows_do_not_depend_on_the_batches(records, cut):
    rules, whole = given_rules(), given_records(*records)
    found = rows_of(whole, rules)
    one = rows_of(whole.slice(0, cut), rules)
    other = RowBatch([], 0, 0) if one.bad else rows_of(whole.slice(cut), rules)
    assert found == RowBatch(
        one.rows + other.rows,
        one.filtered + other.filtered,
        one.ignored + other.ignored,
        one.bad or other.bad,
    )
