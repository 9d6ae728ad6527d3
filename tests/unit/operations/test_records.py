"""Operations in their topic: the record's key, value and header have to agree."""

import pytest
from tests.support.operation_samples import given_operation, sent

from tidemark.operations.corrections import CORRECTION_HEADER, Correction
from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import encoded
from tidemark.operations.reading import read_record

pytestmark = pytest.mark.unit

CORRECTION = Correction("sync-1", 41, "d2719a8c-6e9c-4bcb-9d0b-7a4e0f0f6f2a")
HEADER = (CORRECTION_HEADER, CORRECTION.to_header())


def refusal(key, value, headers=()):
    with pytest.raises(BadOperation) as raised:
        read_record(key, value, headers)
    return str(raised.value)


@pytest.mark.parametrize("headers", [None, (), [("trace", b"\xff"), ("empty", None)]])
def test_a_record_is_what_the_agent_wrote(headers):
    operation = given_operation()
    found = read_record(operation.key, encoded(operation), headers)
    assert (found.operation, found.correction) == (operation, None)


def test_a_record_with_the_header_is_a_correction():
    operation = given_operation()
    headers = [("trace", b"1"), HEADER]
    assert read_record(operation.key, encoded(operation), headers).correction == CORRECTION


def test_a_record_without_a_value_is_no_delete():
    assert refusal(b"video/x34cd", None).startswith("it has no value: deletes are operations too")


@pytest.mark.parametrize("key", [None, b"", b"video", b"video/other", b"Video/x34cd", b"video/x34cd "])
def test_a_record_has_the_key_of_its_object(key):
    assert refusal(key, encoded(given_operation())) == "its key is not the `type/id` of its value"


def test_the_key_is_of_the_lower_cased_type():
    assert read_record(b"video/x34cd", sent(type="Video"), ()).operation == given_operation()


def test_a_record_names_its_time():
    assert refusal(b"video/x34cd", sent(timestamp=None)) == "its `timestamp` is not a text by RFC 3339"


@pytest.mark.parametrize(
    "text",
    [
        None,
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"run": "s", "looked_at": 1}',
        b'{"run": 1, "looked_at": 1, "topic_id": "t"}',
        b'{"run": "s", "looked_at": -1, "topic_id": "t"}',
        b'{"run": "s", "looked_at": true, "topic_id": "t"}',
        b'{"run": "s", "looked_at": 1.5, "topic_id": "t"}',
        b'{"run": "s", "looked_at": "1", "topic_id": "t"}',
        b'{"run": "s", "looked_at": 9223372036854775808, "topic_id": "t"}',
        b'{"run": "\xff", "looked_at": 1, "topic_id": "t"}',
        b'{"run": ' + b"[" * 100_000,
    ],
)
def test_a_header_that_cannot_be_read_is_refused(text):
    operation = given_operation()
    found = refusal(operation.key, encoded(operation), [(CORRECTION_HEADER, text)])
    assert found == "its header `correction` cannot be read"


def test_two_corrections_in_one_record_are_refused():
    operation = given_operation()
    found = refusal(operation.key, encoded(operation), [HEADER, HEADER])
    assert found == "it has the header `correction` 2 times"


def test_a_header_is_read_as_it_was_written():
    assert Correction.from_header(CORRECTION.to_header()) == CORRECTION
