"""Envelopes: what each says of the row of a message's key."""

import json

import pytest
from tests.support.collection_samples import given_records, given_rules

from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.collection.model.envelopes.registry import ENVELOPES
from tidemark.collection.model.key_format import KeyFormat
from tidemark.collection.model.rows import rows_of

pytestmark = pytest.mark.unit

A, OWNER = (b"a",), {"columns": {"owner": "text"}}


def made(rules, key, value):
    """The only row of a message: its key, its cells and whether it is gone; None where it is ignored."""
    value = value if value is None or type(value) is bytes else json.dumps(value).encode()
    batch = rows_of(given_records((key, value)), rules)
    if batch.bad:
        raise AssertionError(batch.bad.problem)
    if batch.ignored:
        return None
    (row,) = batch.rows
    return row.key, row.values, row.gone


def problem(rules, key, value):
    value = value if value is None or type(value) is bytes else json.dumps(value).encode()
    batch = rows_of(given_records((key, value)), rules)
    assert not batch.rows
    assert batch.bad is not None
    return batch.bad.problem


def test_every_name_has_its_envelope():
    assert {name: envelope.name for name, envelope in ENVELOPES.items()} == {one: one for one in EnvelopeName}


class TestUpsert:
    rules = given_rules("upsert", **OWNER)

    def test_a_value_is_the_row(self):
        assert made(self.rules, b"a", {"owner": "Ann"}) == (A, (b"Ann",), False)

    def test_a_missing_field_and_null_are_null_and_others_are_ignored(self):
        assert made(self.rules, b"a", {"age": 7}) == (A, (None,), False)
        assert made(self.rules, b"a", {"owner": None}) == (A, (None,), False)

    def test_no_value_is_a_delete(self):
        assert made(self.rules, b"a", None) == (A, (None,), True)

    @pytest.mark.parametrize("value", [b"", b"null", b"[1]", b"5", b"x", b'{"owner": "Ann"} {}', b"\xff"])
    def test_a_value_that_is_no_json_object_is_bad(self, value):
        assert "its value cannot be read (" in problem(self.rules, b"a", value)


class TestAppend:
    rules = given_rules("append", key={"message": "bigint"}, **OWNER)

    @pytest.mark.parametrize("key", [b"a", None, b""])
    def test_the_id_is_the_key_whatever_the_message_key_is(self, key):
        assert made(self.rules, key, {"owner": "Ann"}) == (((100).to_bytes(8, "big"),), (b"Ann",), False)

    def test_no_value_is_bad(self):
        assert problem(self.rules, b"a", None).startswith("it has no value, and there is no row to delete")

    def test_a_transform_may_drop_a_message_and_not_delete_one(self):
        deleting = {"function": {"path": "tests.support.collection_samples.deleted"}}
        rules = given_rules("append", key={"message": "bigint"}, transforms=[deleting])
        assert problem(rules, b"a", {}).startswith("a transform made a delete of it, and with `append`")


class TestDebezium:
    rules = given_rules("debezium", **OWNER)
    key = b'{"id": "a"}'

    @pytest.mark.parametrize("op", ["c", "r", "u"])
    def test_after_is_the_row(self, op):
        event = {"op": op, "before": {"owner": "Al"}, "after": {"id": "a", "owner": "Ann"}, "ts_ms": 5}
        assert made(self.rules, self.key, event) == (A, (b"Ann",), False)

    def test_a_delete_and_the_tombstone_after_it(self):
        assert made(self.rules, self.key, {"op": "d", "before": {"id": "a"}, "after": None}) == (
            A,
            (None,),
            True,
        )
        assert made(self.rules, self.key, None) == (A, (None,), True)

    def test_a_converter_may_wrap_value_and_key(self):
        key = {"schema": {"type": "struct"}, "payload": {"id": "a"}}
        event = {"schema": None, "payload": {"op": "c", "after": {"owner": "Ann"}}}
        assert made(self.rules, json.dumps(key).encode(), event) == (A, (b"Ann",), False)

    def test_a_wrapped_null_is_a_delete(self):
        assert made(self.rules, self.key, {"schema": {}, "payload": None}) == (A, (None,), True)

    def test_a_wrapped_key_has_exactly_the_key_columns(self):
        key = {"schema": {}, "payload": {"id": "a", "region": "eu"}}
        assert '"region", which is not a key column' in problem(self.rules, json.dumps(key).encode(), None)

    def test_a_logical_message_is_ignored_whatever_its_key_is(self):
        assert made(self.rules, b'{"prefix": "p"}', {"op": "m", "message": {"prefix": "p"}}) is None

    def test_a_truncation_is_bad_and_says_why(self):
        said = problem(self.rules, None, {"op": "t", "before": None, "after": None})
        assert said.startswith("it says that all rows of the table were truncated")
        assert "`skipped.operations`" in said

    @pytest.mark.parametrize(
        ("event", "said"),
        [
            ({"op": "x"}, 'its `op` is "x", which is not one of c, r, u, d, t and m'),
            ({"op": 1}, "its `op` is 1, which is not one of"),
            ({"op": None}, "it has no `op`"),
            ({"owner": "Ann"}, "it has no `op`, so it is not a change event of Debezium"),
            ({"schema": {}, "payload": [1]}, "it has no `op`"),
            ({"op": "c"}, 'its `op` is "c", but it has no `after` with the row'),
            ({"op": "u", "after": None}, 'its `op` is "u", but it has no `after`'),
            ({"op": "u", "after": "x"}, 'its `op` is "u", but it has no `after`'),
        ],
    )
    def test_what_is_no_change_event_is_bad(self, event, said):
        assert said in problem(self.rules, self.key, event)

    @pytest.mark.parametrize(
        ("cql_type", "placeholder"),
        [("text", "__debezium_unavailable_value"), ("blob", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")],
    )
    def test_a_placeholder_for_a_value_that_was_not_sent_is_never_stored(self, cql_type, placeholder):
        rules = given_rules("debezium", columns={"photo": cql_type})
        said = problem(rules, self.key, {"op": "u", "after": {"photo": placeholder}})
        assert said.startswith("column `photo` is not in it: a placeholder says")

    def test_a_placeholder_in_a_field_that_is_not_declared_does_no_harm(self):
        after = {"owner": "Ann", "photo": "__debezium_unavailable_value"}
        assert made(self.rules, self.key, {"op": "u", "after": after}) == (A, (b"Ann",), False)

    def test_a_key_that_is_text_is_taken_where_the_file_says_so(self):
        rules = given_rules("debezium", key_format=KeyFormat.RAW, **OWNER)
        assert made(rules, b"a", None) == (A, (None,), True)

    def test_transforms_see_the_operation_and_the_row(self):
        seen = {"function": {"path": "tests.support.collection_samples.with_operation"}}
        rules = given_rules("debezium", columns={"seen": "text"}, transforms=[seen])
        assert made(rules, self.key, {"op": "c", "after": {}}) == (A, (b"insert",), False)
        assert made(rules, self.key, {"op": "u", "after": {}}) == (A, (b"update",), False)
