"""Attacks on connections: bodies without end, floods of headers, silence. Others are not disturbed."""

import json
import socket

import httpx
import pytest
from tests.support.running_agent import RunningAgent, running_agent
from tests.support.waiting import wait_until

from tidemark.oplog.agent.server import connections

pytestmark = pytest.mark.unit

GOOD = json.dumps({"event": "insert", "parents": [], "type": "video", "id": "x1"}).encode()
POST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


@pytest.fixture
def quick(monkeypatch):
    """Waits for clients end soon."""
    for name in ("HEAD_WITHIN", "FLUSHED_WITHIN", "WRITTEN_WITHIN"):
        monkeypatch.setattr(connections, name, 0.2)


@pytest.fixture
def agent(quick):
    with running_agent(limits={"body": 100_000, "connections": 20}) as made:
        yield made


def answer(connection: socket.socket) -> bytes:
    """Everything that the agent sends until it closes the connection."""
    found = b""
    try:
        while chunk := connection.recv(65_536):
            found += chunk
    except ConnectionResetError:
        pass
    return found


def is_well(agent: RunningAgent) -> bool:
    """Whether another client is served."""
    sent = httpx.post(agent.url, content=GOOD, headers={"content-type": "application/json"}, timeout=60)
    return sent.status_code == 204


def test_an_operation_arrives(agent):
    assert is_well(agent)
    assert [key for _, key, _ in agent.producer.sent] == [b"video/x1"]


def test_a_connection_is_used_for_many_requests(agent):
    with httpx.Client(base_url=agent.url) as client:
        statuses = {
            client.post("/", content=GOOD, headers={"content-type": "application/json"}).status_code
            for _ in range(50)
        }
    assert statuses == {204}


def test_operations_by_udp_and_http_have_one_port(agent):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(GOOD, ("127.0.0.1", agent.port))
        sender.sendto(b"{", ("127.0.0.1", agent.port))
    found = wait_until(lambda: status if (status := agent.status)["events_received"] == 2 else None)
    assert (found["events_ingested"], found["events_error"]) == (1, 1)


def test_headers_without_end_are_refused(agent):
    with agent.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        try:
            for number in range(10_000):
                connection.sendall(b"x-%d: %s\r\n" % (number, b"a" * 100))
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert answer(connection)[:12] in (b"HTTP/1.1 431", b"")
    assert is_well(agent)


def test_a_header_without_end_is_refused(agent):
    with agent.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012
            for _ in range(10_000):
                connection.sendall(b"a" * 10_000)
    assert is_well(agent)


def test_a_path_without_end_is_refused(agent):
    with agent.connect() as connection:
        connection.sendall(b"GET /")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012
            for _ in range(10_000):
                connection.sendall(b"a" * 10_000)
    assert is_well(agent)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: a\r\n", b"\r\n"])
def test_a_client_that_says_nothing_more_is_cut(agent, sent):
    with agent.connect() as connection:
        connection.sendall(sent)
        assert answer(connection) == b""
    assert agent.status["http_connections_cut"] == 1


def test_a_body_without_end_is_413(agent):
    with agent.connect() as connection:
        connection.sendall(POST + b"transfer-encoding: chunked\r\n\r\n")
        try:
            for _ in range(1_000):
                connection.sendall(b"2710\r\n" + b"a" * 10_000 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert answer(connection)[:12] in (b"HTTP/1.1 413", b"")
    assert is_well(agent)


@pytest.mark.parametrize(
    "sent",
    [
        *(b"\x16\x03\x01\x02", b"GET / HTTP/9.9\r\n\r\n", b"G\0T / HTTP/1.1\r\n\r\n", b"\xff" * 1_000),
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\rb\r\n\r\n",
    ],
)
def test_what_is_no_http_is_400_and_closed(agent, sent):
    with agent.connect() as connection:
        connection.sendall(sent)
        assert answer(connection)[:12] in (b"HTTP/1.1 400", b"")
    assert is_well(agent)


def test_requests_ahead_of_their_answers_are_bounded(agent):
    with agent.connect() as connection:
        agent.producer.acknowledges = False
        request = POST + b"content-length: %d\r\n\r\n" % len(GOOD) + GOOD
        connection.sendall(request * 100)
        assert answer(connection) == b""
        agent.producer.acknowledges = True
    assert len(agent.producer.sent) == 1
    assert is_well(agent)


def test_too_many_connections_are_refused_and_the_others_go_on(agent):
    kept = [agent.connect() for _ in range(20)]
    try:
        with agent.connect() as connection:
            assert answer(connection).startswith(b"HTTP/1.1 503")
    finally:
        for connection in kept:
            connection.close()
    assert wait_until(lambda: agent.status["http_connections"] <= 2)
    assert is_well(agent)


def test_a_client_that_reads_nothing_is_cut(agent):
    with agent.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        try:
            for _ in range(100_000):
                connection.sendall(b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert agent.status["http_connections_cut"] >= 1


def test_an_agent_that_is_asked_to_stop_answers_what_it_has_begun():
    with running_agent() as agent:
        agent.producer.acknowledges = False
        with agent.connect() as connection:
            connection.sendall(POST + b"content-length: %d\r\n\r\n" % len(GOOD) + GOOD)
            wait_until(lambda: agent.producer.sent)
            agent.stop()
            agent.producer.acknowledges = True
            assert answer(connection).startswith(b"HTTP/1.1 204")
    assert agent.failure == []
