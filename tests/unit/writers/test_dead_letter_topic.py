"""Item 20: headers of dead letters as users of Kafka Connect know them."""

import pytest

from tidemark.delivery.dead_letters.store import NOT_TRIED, DeadLetter
from tidemark.writers.kafka.dead_letter_topic import headers_of

pytestmark = pytest.mark.unit

MESSAGE = {
    "id": 7,
    "topic": "orders",
    "partition": 1,
    "offset": 42,
    "headers": [{"name": "trace", "value": b"\x00"}, {"name": "none", "value": None}],
}


def test_a_letter_says_where_it_comes_from_what_failed_and_who_let_it_pass():
    letter = DeadLetter("shop", "archive", MESSAGE, "it makes no sense", "a test record", "ann", 1)
    assert headers_of(letter) == [
        ("trace", b"\x00"),
        ("none", None),
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"1"),
        ("__connect.errors.offset", b"42"),
        ("__connect.errors.connector.name", b"shop/archive"),
        ("__connect.errors.task.id", b"0"),
        ("__connect.errors.stage", b"TASK_PUT"),
        ("__connect.errors.exception.class.name", b"tidemark.delivery.writer.BadMessage"),
        ("__connect.errors.exception.message", b"it makes no sense"),
        ("tidemark.id", b"7"),
        ("tidemark.writer", b"archive"),
        ("tidemark.by", b"ann"),
        ("tidemark.reason", b"a test record"),
    ]


def test_what_was_never_tried_has_no_exception():
    letter = DeadLetter("shop", "archive", MESSAGE, NOT_TRIED, "known", "ann", 1, failed=False)
    assert not [name for name, _ in headers_of(letter) if "exception" in name]
