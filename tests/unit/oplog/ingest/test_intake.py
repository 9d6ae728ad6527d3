"""Operations by UDP: which are taken, and what is counted."""

import asyncio
import json

import pytest
from tests.support.scripted_producer import ScriptedProducer

from tidemark.oplog.agent.ingest.counters import IngestCounters
from tidemark.oplog.agent.ingest.intake import Intake
from tidemark.oplog.agent.ingest.queue import IngestQueue

pytestmark = pytest.mark.unit

GOOD = {"event": "insert", "parents": ["user/1"], "type": "video", "id": "x1"}


@pytest.fixture
def producer() -> ScriptedProducer:
    return ScriptedProducer()


@pytest.fixture
def intake(producer) -> Intake:
    counters = IngestCounters()
    return Intake(IngestQueue(3, counters, lambda key: 0, producer.reporting), counters)


def datagram(**fields) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


def test_r4_a_datagram_is_one_operation(intake, producer):
    intake.take_datagram(datagram(), 0)
    ((_, key, value),) = producer.sent
    assert key == b"video/x1"
    assert json.loads(value) == {**GOOD, "timestamp": "1970-01-01T00:00:00.000Z"}


def test_c1_names_are_stored_in_lower_case(intake, producer):
    intake.take_datagram(datagram(event="INSERT", type="Video"), 0)
    value = json.loads(producer.values[0])
    assert (value["event"], value["type"]) == ("insert", "video")


def test_h2_the_time_of_receipt_is_the_default(intake, producer):
    intake.take_datagram(datagram(timestamp=None), 1_700_000_000_123)
    assert json.loads(producer.values[0])["timestamp"] == "2023-11-14T22:13:20.123Z"


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b"null", b"\xff\xfe", b"\0" * 60_000, b"[" * 60_000, b'"' + b"\\" * 1_000),
        json.dumps(GOOD).replace("]", "],").replace('"x1"', '"x1",').encode(),
        *(
            datagram(event="create"),
            datagram(id=7),
            datagram(id=""),
            datagram(type="a/b"),
            datagram(parents=None),
        ),
        datagram(id="x" * 1_025),
    ],
)
def test_r9_invalid_input_is_counted_and_stops_nothing(intake, producer, text):
    intake.take_datagram(text, 0)
    intake.take_datagram(datagram(), 0)
    assert (intake.counters.received, intake.counters.error) == (2, 1)
    assert len(producer.sent) == 1


def test_c3_a_large_datagram_is_taken_as_a_whole(intake, producer):
    parents = [f"user/{number:0100}" for number in range(200)]
    intake.take_datagram(datagram(parents=parents), 0)
    assert json.loads(producer.values[0])["parents"] == parents


def test_c4_r39_a_full_queue_discards_what_comes_new(intake, producer):
    for number in range(5):
        intake.take_datagram(datagram(id=f"{number}"), 0)
    assert intake.counters.discarded == 2
    assert [key for _, key, _ in producer.sent] == [b"video/0", b"video/1", b"video/2"]


def test_lines_of_a_request_are_judged_together_and_numbered(intake):
    good, bad = intake.read_lines([(1, datagram()), (3, b"{"), (4, datagram(id=""))], 0)
    assert ([line.number for line in good], [line.number for line in bad]) == ([1], [3, 4])
    assert (intake.counters.received, intake.counters.error) == (2, 2)


def test_a_request_for_which_there_is_no_room_is_not_sent_in_part(intake, producer):
    async def send():
        good, _ = intake.read_lines([(number, datagram()) for number in range(4)], 0)
        return intake.send(good)

    assert asyncio.run(send()) is None
    assert producer.sent == []
    assert intake.counters.received == 0
