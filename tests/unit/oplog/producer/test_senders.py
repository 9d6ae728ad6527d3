"""Senders: what is acknowledged, what is tried again, what is an error."""

import json
import socket
from collections.abc import Iterable, Iterator

import pytest
from tests.support.scripted_agent import Received, Reset, ScriptedAgent, Step, answer

from tidemark.oplog.producer.errors import (
    BadAgentAddress,
    DatagramRefused,
    OperationsNotAcknowledged,
    OperationsRefused,
)
from tidemark.oplog.producer.http_sender import HttpSender
from tidemark.oplog.producer.lines import OperationLine, read_lines
from tidemark.oplog.producer.udp_sender import LARGEST, UdpSender

pytestmark = pytest.mark.unit


def given_lines(*names: str) -> list[OperationLine]:
    return list(
        read_lines(
            f'{{"event":"insert","parents":[],"type":"video","id":"{name}"}}'.encode() for name in names
        )
    )


def ids(request: Received) -> list[str]:
    return [json.loads(line)["id"] for line in request.body.splitlines()]


class Scripted(ScriptedAgent):
    """Answers requests one after the other with these answers."""

    def __init__(self, *answers: Step) -> None:
        left: Iterator[Step] = iter(answers)

        def script(request: Received) -> Iterable[Step]:
            return [next(left)]

        super().__init__(script)


class Waits(list[float]):
    """Waits between attempts, which take no time."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def test_C5_204_is_an_acknowledgement():
    with Scripted(answer(204)) as agent, HttpSender(agent.url, token="secret") as sender:
        sender.send(given_lines("a", "b"))
        assert sender.acknowledged == 2
    (request,) = agent.requests
    assert ids(request) == ["a", "b"]
    assert request.headers["content-type"] == "application/x-ndjson"
    assert request.headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 415])
def test_C5_an_answer_that_a_retry_cannot_change_is_an_error(status):
    said = answer(status, b'{"error": "no", "lines": [{"line": 2, "error": "its `id` is missing"}]}')
    with Scripted(said) as agent, HttpSender(agent.url) as sender:
        with pytest.raises(OperationsRefused, match="its `id` is missing") as refused:
            sender.send(given_lines("a", "b"))
        assert refused.value.status == status
        assert len(agent.requests) == 1


@pytest.mark.parametrize("said", [answer(429, Retry_After="7"), answer(503, Retry_After="7")])
def test_an_agent_that_is_busy_is_asked_again_when_it_says(said):
    waits = Waits()
    with Scripted(said, answer(204)) as agent, HttpSender(agent.url, wait=waits) as sender:
        sender.send(given_lines("a"))
        assert sender.acknowledged == 1
    (wait,) = waits
    assert 7 <= wait <= 8


@pytest.mark.parametrize("broken", [b"", Reset(), b"garbage\r\n\r\n"])
def test_an_answer_that_is_lost_is_no_acknowledgement(broken):
    with Scripted(broken, answer(204)) as agent, HttpSender(agent.url, wait=Waits()) as sender:
        sender.send(given_lines("a", "b"))
    assert [ids(request) for request in agent.requests] == [["a", "b"], ["a", "b"]]


def test_only_what_is_not_acknowledged_is_sent_again():
    partly = answer(503, b'{"error": "Kafka is slow", "acknowledged": [1, 3]}')
    with Scripted(partly, answer(204)) as agent, HttpSender(agent.url, wait=Waits()) as sender:
        sender.send(given_lines("a", "b", "c"))
        assert sender.acknowledged == 3
    assert ids(agent.requests[1]) == ["b"]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"acknowledged": "all"}', b'{"acknowledged": ["1", null]}'])
def test_an_answer_that_acknowledges_nothing_clearly_acknowledges_nothing(body):
    with Scripted(answer(503, body), answer(204)) as agent, HttpSender(agent.url, wait=Waits()) as sender:
        sender.send(given_lines("a"))
    assert ids(agent.requests[1]) == ["a"]


def test_too_many_failures_are_an_error_that_names_the_line():
    partly = answer(503, b'{"error": "Kafka is slow", "acknowledged": [1]}')
    with Scripted(partly, answer(503)) as agent, HttpSender(agent.url, attempts=2, wait=Waits()) as sender:
        with pytest.raises(OperationsNotAcknowledged) as error:
            sender.send(given_lines("a", "b"))
        assert (error.value.line, error.value.before) == (2, 0)


@pytest.mark.parametrize("url", ["127.0.0.1:8042", "udp://127.0.0.1:1", "http://", "http://host:port"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(BadAgentAddress):
        HttpSender(url)


def test_messages_have_no_password():
    with Scripted(answer(400)) as agent, HttpSender(agent.url.replace("//", "//user:secret@")) as sender:
        with pytest.raises(OperationsRefused) as refused:
            sender.send(given_lines("a"))
        assert "secret" not in str(refused.value)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        found.settimeout(60)
        yield found


def test_R4_one_datagram_is_one_operation(listener):
    with UdpSender(*listener.getsockname()) as sender:
        for line in given_lines("a", "b"):
            sender.send(line)
        assert sender.sent == 2
    assert [json.loads(listener.recv(65_535))["id"] for _ in range(2)] == ["a", "b"]


def test_an_operation_that_no_datagram_holds_is_refused(listener):
    (line,) = given_lines("a")
    with UdpSender(*listener.getsockname()) as sender, pytest.raises(DatagramRefused):
        sender.send(OperationLine(1, line.key, b"x" * (LARGEST + 1)))


def test_a_port_without_an_agent_is_an_error(listener):
    address = listener.getsockname()
    listener.close()
    first, second, third = given_lines("a", "b", "c")
    with UdpSender(*address) as sender:
        sender.send(first)
        with pytest.raises(DatagramRefused, match="no agent listens"):
            sender.send(second)
        sender.send(third)


def test_a_host_that_does_not_exist_is_refused():
    with pytest.raises(BadAgentAddress):
        UdpSender("agent.invalid", 8042)
