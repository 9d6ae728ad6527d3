"""Which corrections of a batch are void, and of which objects earlier rows have to be read for that."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.collection_samples import given_columns
from tests.support.log_samples import given_binding
from tests.support.oplog_world import OPERATIONS, events_of, operation_records

from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.collection.model.rows import RowRules, rows_of
from tidemark.collection.model.schema import CollectionSchema
from tidemark.collection.model.void_corrections import ValidOffsets

pytestmark = pytest.mark.unit

TOPIC_ID = "first accounts"
KEY, COLUMNS = (given_columns(**dict(OPERATIONS[name])) for name in ("key", "columns"))
RULES = RowRules(CollectionSchema(KEY, COLUMNS, 4), EnvelopeName.OPLOG)
X = ((b"video", b"x"), "accounts", 0)


def given_batch(words, lower=100):
    """Operations of partition 0; the id of each is its offset."""
    binding = given_binding(1_000, lower, ("accounts", 0, lower, lower + len(words.split())))
    return rows_of(operation_records(binding, 0, words, lower, TOPIC_ID), RULES)


def given_offsets(**newest):
    places = {((b"video", name.encode()), "accounts", 0): offset for name, offset in newest.items()}
    return ValidOffsets({"accounts": TOPIC_ID}, dict(places))


def kept(words, valid=None, lower=100):
    """The rows that are left, where every earlier operation that is needed is known."""
    made, offsets = given_batch(words, lower), valid or given_offsets()
    offsets.learn(offsets.unknown(made), {})
    return events_of(offsets.without_void(made).rows)


def test_a_correction_of_an_object_without_operations_counts():
    assert kept("x@100 y~@100") == ["x=insert", "y=delete"]


def test_a_correction_is_void_after_an_operation_that_its_sender_had_not_read():
    assert kept("x y x~@100") == ["x=insert", "y=insert"]


def test_a_correction_counts_after_an_operation_that_its_sender_had_read():
    assert kept("x y x~@101") == ["x=insert", "y=insert", "x=delete"]


def test_what_came_before_the_batch_counts_as_much():
    assert kept("x@50", given_offsets(x=49)) == ["x=insert"]
    assert kept("x@50", given_offsets(x=50)) == []


def test_operations_of_other_objects_void_nothing():
    assert kept("y z x@100") == ["y=insert", "z=insert", "x=insert"]


def test_of_two_corrections_for_one_state_the_first_one_counts():
    assert kept("x@100 x~@100") == ["x=insert"]


def test_a_void_correction_voids_no_other():
    assert kept("x x~@100 x~@101") == ["x=insert", "x=delete"]


def test_a_correction_that_was_sent_too_late_is_void():
    assert kept("x@0", lower=20_000) == ["x=insert"]
    assert kept("x@0", lower=20_001) == []


def test_a_correction_for_an_earlier_topic_is_void_and_operations_are_not():
    assert kept("x@100!other y") == ["y=insert"]


def test_where_the_topic_has_no_id_every_correction_is_void():
    valid = ValidOffsets({})
    made = given_batch("x@100 y")
    assert valid.unknown(made) == []
    assert events_of(valid.without_void(made).rows) == ["y=insert"]


def test_void_corrections_count_as_ignored():
    made = given_batch("x x~@100 y@100 y~@100")
    valid = given_offsets(y=None)
    left = valid.without_void(made)
    assert (left.written, left.ignored) == (2, 2)


def test_earlier_rows_are_needed_of_the_first_correction_of_an_object_alone():
    made = given_batch("x@100 x~@101 y z@100 y~@101 y@103")
    assert [row.message_id for row in given_offsets().unknown(made)] == [100, 103]


def test_earlier_rows_are_not_needed_where_a_correction_is_void_anyway():
    made = given_batch("x@0 x~@20000", lower=20_001)
    assert [row.message_id for row in given_offsets().unknown(made)] == [20_002]


def test_what_is_known_is_not_read_again():
    assert given_offsets(x=None).unknown(given_batch("x@100")) == []


def test_a_key_in_another_partition_is_another_place():
    made = given_batch("x@100")
    elsewhere = replace(made, rows=[row._replace(partition=1) for row in made.rows])
    valid = given_offsets(x=100)
    assert len(valid.unknown(elsewhere)) == 1


words = st.lists(
    st.builds(
        lambda name, event, looked_at: name + event + (f"@{looked_at}" if looked_at is not None else ""),
        st.sampled_from("xy"),
        st.sampled_from(["", "+", "~"]),
        st.none() | st.integers(95, 112),
    ),
    min_size=1,
    max_size=10,
)


@given(words, st.data())
def test_the_result_does_not_depend_on_how_messages_are_cut_into_batches(found, data):
    whole = kept(" ".join(found), given_offsets(x=97, y=None))
    cut = data.draw(st.integers(0, len(found)))
    valid, parts = given_offsets(x=97, y=None), []
    for own, lower in ((found[:cut], 100), (found[cut:], 100 + cut)):
        if own:
            parts += kept(" ".join(own), valid, lower)
    assert parts == whole


@given(words)
def test_the_rule_holds_for_every_message(found):
    """A correction is void if and only if a valid operation of its object is in [looked_at, offset)."""
    valid: dict[str, list[int]] = {"x": [97], "y": []}
    expected = []
    for offset, word in enumerate(found, start=100):
        name, _, looked_at = word.partition("@")
        if not looked_at or not [one for one in valid[name[0]] if int(looked_at) <= one < offset]:
            valid[name[0]].append(offset)
            expected.append(offset)
    made, offsets = given_batch(" ".join(found)), given_offsets(x=97, y=None)
    assert [row.offset for row in offsets.without_void(made).rows] == expected
