"""Events as bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.oplog_samples import NOON, operation

from tidemark.operations.operation import EventName
from tidemark.oplog.model.server_sent_events import (
    JSON_LINES,
    SERVER_SENT,
    Marker,
    OperationData,
    object_address,
)

pytestmark = pytest.mark.unit


def fields(block: bytes) -> dict[str, str]:
    """The fields of one event, as a parser by the standard finds them."""
    (text, rest) = block.decode().split("\n\n", 1)
    assert rest == ""
    return dict(line.split(": ", 1) for line in text.split("\n"))


def test_T1_R12_R13_the_exact_bytes_of_a_marker() -> None:
    assert SERVER_SENT.event(Marker.LIVE, b"a") == b"id: a\nevent: live\ndata: {}\n\n"


def test_R13_R14_the_exact_bytes_of_an_operation() -> None:
    data = OperationData().encode(operation("x", EventName.INSERT, parents=["user/1"]))
    assert SERVER_SENT.event("insert", b"o1.d.AA", data) == (
        b'id: o1.d.AA\nevent: insert\ndata: {"timestamp":"2025-11-26T12:00:00.000Z","parents":["user/1"],'
        b'"type":"video","id":"x"}\n\n'
    )


@pytest.mark.parametrize("marker", [one for one in Marker if one is not Marker.SLOW])
def test_C23_every_marker_has_data_so_that_browsers_dispatch_it(marker: Marker) -> None:
    assert fields(SERVER_SENT.event(marker, b"a")) == {"id": "a", "event": marker, "data": "{}"}


def test_G6_slow_leaves_the_position_of_the_client_as_it_is() -> None:
    assert SERVER_SENT.without_id(Marker.SLOW) == b"event: slow\ndata: {}\n\n"


def test_a_stream_opens_with_the_time_to_reconnect_and_its_mode() -> None:
    opening = SERVER_SENT.opening(b"a", "exact", 2000)
    assert opening == b'retry: 2000\n\nid: a\nevent: open\ndata: {"mode":"exact"}\n\n'


@given(st.text(min_size=1), st.lists(st.text(min_size=1)))
def test_no_value_can_break_a_line(id_: str, parents: list[str]) -> None:
    data = OperationData().encode(operation(id_, parents=parents))
    found = json.loads(fields(SERVER_SENT.event("update", b"a", data))["data"])
    assert (found["id"], found["parents"]) == (id_, parents)


@given(st.text(min_size=1))
def test_a_line_of_json_is_one_line(id_: str) -> None:
    line = JSON_LINES.event("update", b"o1.d.AA", OperationData().encode(operation(id_)))
    assert line.count(b"\n") == 1
    assert json.loads(line)["data"]["id"] == id_


def test_lines_of_json_name_the_event_and_its_id() -> None:
    line = json.loads(JSON_LINES.event(Marker.RESET, b"o1.d.AA"))
    assert line == {"event": "reset", "id": "o1.d.AA", "data": {}}


def test_a_stream_of_json_opens_with_its_mode() -> None:
    assert json.loads(JSON_LINES.opening(b"a", "live", 2000)) == {
        "event": "open",
        "id": "a",
        "data": {"mode": "live"},
    }


def test_a_heartbeat_is_no_event() -> None:
    assert (SERVER_SENT.heartbeat, JSON_LINES.heartbeat) == (b":\n\n", b"\n")


def test_C25_H8_the_address_of_an_object_is_in_its_data() -> None:
    data = OperationData("https://api/{{type}}/{{id}}?all").encode(operation("x"))
    assert json.loads(data)["ref"] == "https://api/video/x?all"


def test_C25_without_a_template_there_is_no_address() -> None:
    assert "ref" not in json.loads(OperationData().encode(operation("x")))


def test_C25_an_id_cannot_add_to_the_path() -> None:
    assert object_address("/{{type}}/{{id}}", "video", "../a?b#c d") == "/video/..%2Fa%3Fb%23c%20d"


def test_C25_an_id_that_looks_like_a_template_stays_what_it_is() -> None:
    assert object_address("/{{type}}/{{id}}/{{x}}", "{{id}}", "7") == "/%7B%7Bid%7D%7D/7/{{x}}"


def test_R14_the_order_of_the_fields_is_that_of_the_original() -> None:
    data = json.loads(OperationData("/{{id}}").encode(operation(at=NOON)))
    assert list(data) == ["timestamp", "parents", "type", "id", "ref"]
