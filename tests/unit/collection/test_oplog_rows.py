"""The rows that operations make: their cells, what a delete keeps, and what is no operation."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from tests.support.collection_samples import T, given_columns, given_records
from tests.support.operation_samples import MOMENT, given_operation, operations, sent

from tidemark.collection.model.envelopes.envelope import GIVEN_COLUMNS, EnvelopeName
from tidemark.collection.model.rows import RowRules, rows_of
from tidemark.collection.model.schema import CollectionSchema
from tidemark.collection.model.values.encoders import encoder_of
from tidemark.operations.operation import EventName, encoded

pytestmark = pytest.mark.unit

GIVEN = GIVEN_COLUMNS[EnvelopeName.OPLOG]
SCHEMA = CollectionSchema(given_columns(**GIVEN.key), given_columns(**GIVEN.data), 4)
RULES = RowRules(SCHEMA, EnvelopeName.OPLOG)


def rows_for(*found):
    records = [(one.key, encoded(one)) for one in found]
    return rows_of(given_records(*records), RULES)


def problem_of(key, value):
    batch = rows_of(given_records((b"video/x34cd", encoded(given_operation())), (key, value)), RULES)
    assert (len(batch.rows), batch.bad.id) == (1, 101)
    return batch.bad.problem


def test_an_operation_is_the_row_of_its_object():
    (row,) = rows_for(given_operation(parents=("user/x3kd", "é"))).rows
    assert row.key == (b"video", b"x34cd")
    event, timestamp, parents = row.values
    assert event == b"insert"
    assert int.from_bytes(timestamp, "big", signed=True) == MOMENT
    assert parents == bytes.fromhex("00000002 00000009") + b"user/x3kd" + bytes.fromhex("00000002 c3a9")
    assert (row.t, row.message_id, row.gone) == (T, 100, False)


def test_a_delete_keeps_its_time_and_parents():
    (row,) = rows_for(given_operation(EventName.DELETE)).rows
    assert row.gone
    assert row.values[0] == b"delete"
    assert None not in row.values


@given(operations)
def test_cells_are_those_of_the_columns_types(operation):
    (row,) = rows_for(operation).rows
    assert row.values[1] == encoder_of(SCHEMA.columns[1].type)(operation.timestamp)
    assert row.values[2] == encoder_of(SCHEMA.columns[2].type)(list(operation.parents))


def test_C28_the_order_is_that_of_the_offsets_and_never_that_of_the_timestamps():
    late = given_operation(EventName.DELETE, timestamp=MOMENT - 10_000)
    rows = rows_for(given_operation(timestamp=MOMENT), late).rows
    assert [row.gone for row in rows] == [False, True]
    assert rows[1].message_id > rows[0].message_id


def test_a_message_that_is_no_operation_is_bad_at_exactly_its_id():
    assert problem_of(b"video/x34cd", None).startswith("it has no value: deletes are operations too")
    assert problem_of(b"video/x34cd", b"{").startswith("it is not JSON")
    assert problem_of(b"video/other", sent()) == "its key is not the `type/id` of its value"
    assert problem_of(None, sent()) == "its key is not the `type/id` of its value"
    assert problem_of(b"a/b/c", sent(type="a/b", id="c")).startswith("its `type` has a slash")


def test_headers_of_other_programs_are_read_over():
    operation = given_operation()
    batch = given_records((operation.key, encoded(operation)), (operation.key, encoded(operation)))
    headers = [None, [{"name": "trace", "value": b"\xff"}, {"name": "more", "value": None}]]
    index = batch.schema.get_field_index("headers")
    column = pa.array(headers, batch.schema.field("headers").type)
    found = rows_of(batch.set_column(index, batch.schema.field("headers"), column), RULES)
    assert (found.written, found.corrections) == (2, {})


def test_headers_of_a_slice_are_its_own():
    operation = given_operation()
    batch = given_records(*[(operation.key, encoded(operation))] * 3)
    header = {"name": "correction", "value": b'{"run":"s","looked_at":1,"topic_id":"t"}'}
    index = batch.schema.get_field_index("headers")
    column = pa.array([[header], None, [header]], batch.schema.field("headers").type)
    whole = batch.set_column(index, batch.schema.field("headers"), column)
    assert [*rows_of(whole.slice(1, 2), RULES).corrections] == [102]
    assert [*rows_of(whole.slice(1, 1), RULES).corrections] == []


def test_messages_of_other_namespaces_are_filtered():
    found = rows_of(given_records((b"no", b"json")), replace(RULES, namespaces="^orders$"))
    assert (found.written, found.filtered, found.bad) == (0, 1, None)
