"""What all writers share: which messages are admitted, and how results add up."""

import pickle
import re

import pyarrow as pa
import pytest
from tests.support.log_samples import given_binding

from tidemark.delivery.writer import BadMessage, Part, Written, admit
from tidemark.log.files.parquet import LOG_SCHEMA

pytestmark = pytest.mark.unit


def given_messages(*namespaces: str) -> pa.Table:
    """One message per namespace, with the ids 0, 1, …"""
    rows = [
        {"id": i, "t": 1, "write_time": 1, "topic": "orders", "partition": 0, "offset": i, "timestamp": 1}
        | {"timestamp_type": 0, "namespace": namespace}
        for i, namespace in enumerate(namespaces)
    ]
    return pa.Table.from_pylist(rows, schema=LOG_SCHEMA)


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        pytest.param(".*", [0, 1, 2, 3], id="all"),
        pytest.param("", [0, 1, 2, 3], id="empty finds a match everywhere"),
        pytest.param("orders", [0, 2, 3], id="anywhere in the name"),
        pytest.param("^orders", [0, 2], id="at the beginning"),
        pytest.param("^orders$", [0, 2], id="the whole name"),
        pytest.param("^(invoices|old-orders)$", [1, 3], id="one or the other"),
        pytest.param("nothing", [], id="none"),
        pytest.param("ORDERS", [], id="case matters"),
    ],
)
def test_messages_are_admitted_by_their_namespace(expression, ids):
    messages = given_messages("orders", "invoices", "orders", "old-orders")
    assert admit(messages, re.compile(expression))["id"].to_pylist() == ids


def test_no_message_is_admitted_from_none():
    assert admit(given_messages(), re.compile("orders")).num_rows == 0


def test_what_is_admitted_has_the_log_s_columns():
    admitted = admit(given_messages("orders", "invoices"), re.compile("orders"))
    assert admitted.schema.equals(LOG_SCHEMA)


def test_a_batch_is_admitted_like_a_table():
    (batch,) = given_messages("orders", "invoices").to_batches()
    assert admit(batch, re.compile("orders"))["id"].to_pylist() == [0]


def test_results_add_up():
    one, other = Written(1, 2, 3, {"rows": 4, "heads": 1}), Written(10, 20, 30, {"rows": 40, "purges": 1})
    assert one + other == Written(11, 22, 33, {"rows": 44, "heads": 1, "purges": 1})


def test_nothing_adds_nothing():
    assert Written() + Written(1, 2, 3, {"rows": 4}) == Written(1, 2, 3, {"rows": 4})


BINDING = given_binding(1_000, 10, ("orders", 0, 0, 5))


@pytest.mark.parametrize(
    ("first", "last", "is_whole"),
    [
        pytest.param(0, None, True, id="nothing said"),
        pytest.param(10, None, True, id="from its beginning"),
        pytest.param(11, None, False, id="from later on"),
        pytest.param(10, 14, False, id="up to somewhere"),
    ],
)
def test_a_part_is_whole_when_nothing_of_the_binding_is_left_out(first, last, is_whole):
    assert Part(BINDING, (), first_id=first, last_id=last).is_whole == is_whole


def test_a_single_message_is_never_a_whole_binding():
    one = given_binding(1_000, 10, ("orders", 0, 0, 1))
    assert not Part(one, (), first_id=10, last_id=10).is_whole


def test_a_bad_message_says_where_it_is_and_how_to_look_at_it():
    bad = BadMessage("orders", "archive", "refunds", 3, 41, 7, "it is no JSON.")
    assert str(bad) == (
        "orders/archive: refunds/3, offset 41 (id 7): it is no JSON. "
        "Look at it: tidemark log show orders --from 7 --to 7 --json"
    )


def test_a_bad_message_travels_whole():
    bad = BadMessage("orders", "archive", "refunds", 3, 41, 7, "it is no JSON")
    sent = pickle.loads(pickle.dumps(bad))
    assert (str(sent), sent.id, sent.problem) == (str(bad), 7, "it is no JSON")
