"""Operations as producers send them: what is accepted, and what each refusal says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operation_samples import operations, sent

from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import EventName, ObjectOperation, encoded, object_key
from tidemark.operations.reading import MOST_PARENTS, read_operation

pytestmark = pytest.mark.unit

RECEIVED = 1_415_243_079_041


def refusal(text: bytes, received: int | None = RECEIVED) -> str:
    with pytest.raises(BadOperation) as raised:
        read_operation(text, received)
    return str(raised.value)


@pytest.mark.parametrize("event", ["insert", "update", "delete"])
def test_T14_the_three_events_are_valid(event):
    assert read_operation(sent(event=event)).event is EventName(event)


@pytest.mark.parametrize("event", ["invalid", "create", "inserted", "", None, 1, ["insert"], {}])
def test_T15_any_other_event_is_refused(event):
    assert refusal(sent(event=event)) == "its `event` is not one of insert, update and delete"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"id": ""}, "its `id` is not a text of at least one character"),
        ({"type": ""}, "its `type` is not a text of at least one character"),
        ({"parents": [""]}, "one of its `parents` is not a text of at least one character"),
    ],
)
def test_T16_an_empty_name_is_refused(fields, problem):
    assert refusal(sent(**fields)) == problem


def test_T17_a_parent_is_an_object():
    assert read_operation(sent(parents=["parent/id"])).parents == ("parent/id",)


def test_C1_event_and_type_are_lower_cased_and_nothing_else():
    found = read_operation(sent(event="INSERT", type="Video", id="X34cd", parents=["User/X3kd"]))
    assert (found.event, found.type, found.id, found.parents) == (
        EventName.INSERT,
        "video",
        "X34cd",
        ("User/X3kd",),
    )


def test_C2_the_example_with_its_trailing_comma_is_refused():
    text = b'{"event": "insert", "parents": ["video/xekw"], "type": "video", "id": "x34cd",}'
    assert refusal(text) == "it is not JSON (JSON is malformed: trailing comma in object (byte 78))"


@pytest.mark.parametrize("id_", [34, 1.5, None, True, ["x"], {"x": 1}])
def test_C3_an_id_that_is_no_text_is_refused(id_):
    assert refusal(sent(id=id_)) == "its `id` is not a text of at least one character"


def test_C3_an_operation_is_larger_than_the_originals_buffer():
    parents = [f"playlist/{number:04}" for number in range(MOST_PARENTS)]
    assert read_operation(sent(parents=parents)).parents == tuple(parents)


@pytest.mark.parametrize("name", ["event", "parents", "type", "id"])
def test_R5_a_missing_field_is_refused(name):
    fields = json.loads(sent())
    del fields[name]
    assert name in refusal(json.dumps(fields).encode())


@pytest.mark.parametrize("parents", [None, "video/x", {"video/x": 1}, 3])
def test_R7_parents_that_are_no_list_are_refused(parents):
    assert refusal(sent(parents=parents)).startswith("its `parents` are not a list")


def test_R7_a_parent_that_is_no_text_is_refused():
    assert refusal(sent(parents=["video/x", 3])).startswith("one of its `parents` is not a text")


def test_R7_parents_may_be_empty():
    assert read_operation(sent(parents=[])).parents == ()


def test_more_parents_than_an_operation_may_have_are_refused():
    assert refusal(sent(parents=["video/x"] * (MOST_PARENTS + 1))) == "it has more than 256 `parents`"


@pytest.mark.parametrize("type_", ["a/b", "/", "A/B"])
def test_a_type_with_a_slash_would_share_a_key_with_another_object(type_):
    assert object_key("a", "b/c") == object_key("a/b", "c")
    assert refusal(sent(type=type_)) == "its `type` has a slash, which separates type and id in keys"


@pytest.mark.parametrize("name", ["type", "id"])
@pytest.mark.parametrize("text", ["a" * 1_024, "é" * 512, "\U0001f600" * 256])
def test_the_longest_names_are_accepted(name, text):
    assert getattr(read_operation(sent(**{name: text})), name) == text


@pytest.mark.parametrize("text", ["a" * 1_025, "é" * 513, "\U0001f600" * 257])
def test_longer_names_are_refused_by_their_bytes(text):
    assert refusal(sent(type=text)) == "its `type` has more than 1024 bytes"
    assert refusal(sent(id=text)) == "its `id` has more than 1024 bytes"
    assert refusal(sent(parents=["a", text])) == "one of its `parents` has more than 1024 bytes"


def test_a_type_whose_lower_case_takes_more_bytes_is_measured_in_lower_case():
    text = "İ" * 512
    assert len(text.encode()) == 1_024 < len(text.lower().encode())
    assert refusal(sent(type=text)) == "its `type` has more than 1024 bytes"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "it is not JSON (Input data was truncated)"),
        (b"\xef\xbb\xbf{}", "it is not JSON (JSON is malformed: invalid character (byte 0))"),
        (b"[]", "it is not a JSON object"),
        (b"null", "it is not a JSON object"),
        (b'"insert"', "it is not a JSON object"),
        (sent() + b"{}", "it is not JSON (JSON is malformed: trailing characters (byte "),
        (b'{"event": NaN}', "it is not JSON (JSON is malformed: invalid character (byte 10))"),
        (b'{"id": ' + b"1" * 5_000 + b"}", "one of its fields cannot be read"),
        (b'{"id": "\\ud800 "}', "it is not JSON (Input data was truncated)"),
        (b'{"id": "\\ud800\\u0061"}', "it is not JSON (JSON is malformed: invalid utf-16 surrogate pair"),
        (b'{"id": "\xed\xa0\x80"}', "it is not JSON ('utf-8' codec can't decode byte 0xed"),
        (b'{"id": "\xff"}', "it is not JSON ('utf-8' codec can't decode byte 0xff"),
        (b'{"id": ' + b"[" * 100_000, "it is not JSON that can be read: it is nested too deeply"),
        (b'{"more": ' + b"[" * 100_000, "it is not JSON that can be read: it is nested too deeply"),
    ],
)
def test_text_that_is_no_json_object_is_refused(text, problem):
    assert refusal(text).startswith(problem)


def test_further_fields_are_ignored():
    assert read_operation(sent(title="no content", ref=None)) == read_operation(sent())


def test_of_a_field_that_is_there_twice_the_last_one_counts():
    text = sent()
    assert read_operation(b'{"event": 1, "id": "other", ' + text[1:]) == read_operation(text)
    assert refusal(text[:-1] + b', "id": 1}') == "its `id` is not a text of at least one character"


def test_characters_that_end_lines_or_texts_elsewhere_are_part_of_an_id():
    id_ = "a\x00b\nc\r\n\u2028d\x7f"
    found = read_operation(sent(id=id_))
    assert found.id == id_
    assert b"\n" not in encoded(found)
    assert read_operation(encoded(found)) == found


def test_H2_without_a_timestamp_it_is_the_time_of_receipt():
    assert read_operation(sent(timestamp=None), RECEIVED).timestamp == RECEIVED
    fields = json.loads(sent())
    del fields["timestamp"]
    assert read_operation(json.dumps(fields).encode(), RECEIVED).timestamp == RECEIVED


@pytest.mark.parametrize("timestamp", [None, 1_415_243_079, True, ["2014-11-06T03:04:39Z"]])
def test_a_timestamp_that_is_no_text_is_refused_where_none_was_received(timestamp):
    assert refusal(sent(timestamp=timestamp), None) == "its `timestamp` is not a text by RFC 3339"


@given(operations)
def test_what_is_encoded_is_read_again_as_it_was(operation):
    assert read_operation(encoded(operation)) == operation


@given(operations)
def test_the_key_names_the_object_alone(operation):
    type_, _, id_ = operation.key.decode().partition("/")
    assert (type_, id_) == (operation.type, operation.id)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_whatever_the_bytes_are_the_refusal_is_the_only_error(text):
    assert refusal(text)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_names = st.sampled_from(["event", "timestamp", "parents", "type", "id"])


@given(st.dictionaries(_names, _values))
def test_whatever_the_fields_are_the_refusal_is_the_only_error(fields):
    try:
        found = read_operation(sent(**fields), RECEIVED)
    except BadOperation:
        return
    assert read_operation(encoded(found)) == found


def test_an_operation_cannot_be_changed():
    found = read_operation(sent())
    assert isinstance(found, ObjectOperation)
    with pytest.raises(AttributeError):
        found.id = "other"  # type: ignore[misc]
