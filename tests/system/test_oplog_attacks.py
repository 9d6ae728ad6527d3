"""Attacks on an agent with streams: it answers or closes, its memory stays bounded, and others are served."""

import json
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.services.agents import IMPATIENT, JSON_HEADERS, StartedAgent, operation
from tests.support.services.impatient_agent import STALL
from tests.support.services.served_pipelines import ServedPipeline, served_pipeline
from tests.support.services.stream_copies import (
    LINES,
    FollowingClient,
    OpenStream,
    OperationSource,
    StreamCopy,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.system

CONNECTIONS = 5_000
A_STREAM = 40_000
"""Bytes of memory; 25,000 are the aim, for one that waits."""
BODIES = 150_000_000
"""Bytes of memory for bodies that are being received: twice what the agent takes of them."""
OTHERS = 100_000_000
"""Bytes of memory that any other attack may cost."""


@dataclass
class Attacked:
    """An agent, and a client that must not notice the attacks on it."""

    served: ServedPipeline
    agent: StartedAgent
    source: OperationSource
    bystander: FollowingClient
    memory: int

    def is_well(self, more: int = OTHERS) -> None:
        """The agent takes and streams operations, its memory is bounded, and the client was not disturbed."""
        number = len(self.source.acknowledged)
        self.source.put(f"probe-{number}")
        told = self.bystander.copy.operations
        wait_until(lambda: ("update", f"video/probe-{number}") in told, 10, "the bystander's operation")
        assert self.bystander.ended == 0
        assert self.agent.resident - self.memory < more
        assert self.source.refused == 0

    def send(self, request: bytes, seconds: float = 30) -> bytes:
        """What is answered to these bytes until the agent closes the connection."""
        with self.agent.connect() as connection:
            connection.settimeout(seconds)
            found = b""
            with suppress(ConnectionError):
                connection.sendall(request)
                while data := connection.recv(65_536):
                    found += data
            return found


@pytest.fixture(scope="module")
def attacked(services: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 20_000), most))
    section = {"heartbeat": "1s", "object_url": "http://shop.example/{{type}}/{{id}}"}
    with (
        served_pipeline(services, tmp_path_factory.mktemp("attacked"), **section) as served,
        served.agents.agent(program=IMPATIENT) as agent,
    ):
        source = OperationSource(agent.url)
        source.put("first")
        served.replicate()
        with FollowingClient(lambda: agent.url, StreamCopy(position="0")) as bystander:
            wait_until(lambda: bystander.copy.is_live, what="the bystander's replication")
            yield Attacked(served, agent, source, bystander, agent.resident)


@pytest.fixture(autouse=True)
def afterwards_nothing_is_left(attacked: Attacked) -> Iterator[None]:
    yield
    wait_until(lambda: attacked.agent.status["clients"] == 1, what="the end of the attackers' streams")
    assert attacked.bystander.ended == 0


@pytest.fixture(scope="module", autouse=True)
def at_last_all_is_well(attacked: Attacked) -> Iterator[None]:
    yield
    attacked.is_well()


POST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
GET = b"GET / HTTP/1.1\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
CLOSED = 0
"""The answer to what is not read to its end may be lost, because the connection is reset then."""


@pytest.mark.parametrize(
    ("request_", "statuses"),
    [
        pytest.param(POST + b"content-length: 100000000\r\n\r\n{", {413}, id="a body of 100 MB"),
        pytest.param(POST + b"content-length: -1\r\n\r\n{}", {400}, id="a body of -1 bytes"),
        pytest.param(POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}", {400}, id="two lengths"),
        pytest.param(
            POST
            + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /status HTTP/1.1\r\n\r\n",
            {400},
            id="a request smuggled behind a length",
        ),
        pytest.param(POST + CHUNKED + b"\r\nffffffffffffffffff\r\n", {400}, id="a chunk"),
        pytest.param(POST + b"transfer-encoding: gzip\r\n\r\n", {400, 411}, id="another transfer encoding"),
        pytest.param(GET + b"x: y\r\n" * 10_000 + b"\r\n", {431, CLOSED}, id="10,000 headers"),
        pytest.param(GET + b"x: " + b"y" * 1_000_000 + b"\r\n\r\n", {431, CLOSED}, id="a long header"),
        pytest.param(b"GET /" + b"y" * 1_000_000 + b" HTTP/1.1\r\n\r\n", {431, CLOSED}, id="a long path"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), {400}, id="TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 404, 405}, id="HTTP/2"),
        pytest.param(b"\x00\xff\xfe\r\n\r\n", {400}, id="no HTTP at all"),
        pytest.param(b"GET /\x00 HTTP/1.1\r\n\r\n", {400, 404}, id="a NUL in the path"),
        pytest.param(b"GET / HTTP/1.1\r\nx\r\n: y\r\n\r\n", {400}, id="a broken header"),
        pytest.param(
            b"GET / HTTP/1.1\r\nconnection: close\r\nlast-event-id: \xff\xfe\r\n\r\n",
            {400},
            id="an id of no text",
        ),
    ],
)
def test_a_request_that_is_none_is_answered_and_its_connection_closed(
    attacked: Attacked, request_: bytes, statuses: set[int]
) -> None:
    answer = attacked.send(request_)
    assert int(answer[:12].removeprefix(b"HTTP/1.1 ") or 0) in statuses, answer[:500]
    assert answer.count(b"HTTP/1.1 ") <= 1, "a second request was answered"


@pytest.mark.parametrize(
    "begin",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HT", id="half a line"),
        pytest.param(b"GET / HTTP/1.1\r\nx: y\r\n", id="headers without an end"),
    ],
)
def test_a_client_that_does_not_end_its_headers_is_cut_off(attacked: Attacked, begin: bytes) -> None:
    with attacked.agent.connect() as connection:
        connection.sendall(begin)
        connection.settimeout(0.2)
        found = None
        while found is None:
            try:
                found = connection.recv(1)
            except TimeoutError:
                with suppress(ConnectionError):
                    connection.sendall(b"x" if begin else b"")
            except ConnectionError:
                found = b""
    assert found == b""


@pytest.mark.parametrize(
    "path",
    [
        b"/../../etc/passwd",
        b"/%2e%2e/%2e%2e/etc/passwd",
        b"//status",
        b"/status/",
        b"/status%00",
        b"/status\\..\\",
        b"/;/status",
        b"http://other.example/etc",
        b"/%0d%0aX-Evil:%201",
        b"*",
    ],
)
def test_only_known_paths_are_answered(attacked: Attacked, path: bytes) -> None:
    answer = attacked.send(b"GET " + path + b" HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    assert answer[9:12] in (b"404", b"400"), answer[:300]
    assert b"x-evil" not in answer.partition(b"\r\n\r\n")[0].lower()


@pytest.mark.parametrize(
    "query",
    [
        "last_event_id=0%0d%0aX-Evil:%201",
        "last_event_id=0%0a%0aevent:%20delete%0adata:%20{}",
        "last_event_id=%00",
        "last_event_id=%ff%fe",
        "since=%0d%0aX-Evil:%201",
        "since=1e99",
        "since=-1",
        "since=99999999999999999999",
        "last_event_id=" + "9" * 24 + "0",
        "last_event_id=" + "o1.AAAAAAAAAAAA." + "1" * 30_000,
        "last_event_id=r1.AAAAAAAAAAAA.1.2.f.%0a",
        "types=" + ",".join(map(str, range(2_000))),
        "&".join(f"x{number}=1" for number in range(500)),
    ],
)
def test_C20_what_a_query_smuggles_in_is_refused(attacked: Attacked, query: str) -> None:
    answer = attacked.send(f"GET /?{query} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
    assert answer[9:12] in (b"400", b"431"), answer[:300]
    assert b"x-evil" not in answer.partition(b"\r\n\r\n")[0].lower()


BAD = [
    b"",
    b"{",
    b"\xff\xfe\x00{}",
    b'{"event":"insert","type":"video","id":"\xc3","parents":[]}',
    b'{"event":"insert","type":"video","id":"\\ud800","parents":[]}',
    b'{"event":"insert","type":"a/b","id":"c","parents":[]}',
    b'{"event":"insert","type":"video","id":1,"parents":[]}',
    b'{"event":"insert","type":"video","id":"x","parents":[],}',
    b'{"event":"insert","type":"video","id":"x","parents":[NaN]}',
    b'{"event":"insert","type":"video","id":"' + b"x" * 2_000 + b'","parents":[]}',
    b'{"event":"insert","type":"video","id":"x","parents":["' + b'p","' * 500 + b'p"]}',
    b"[" * 50_000,
    b'{"a":' * 10_000,
    b'"' + b"\\u0000" * 10_000 + b'"',
    b"\xef\xbb\xbf{}",
    os.urandom(1_000),
]


def test_R9_R38_malformed_operations_are_refused_and_counted(attacked: Attacked) -> None:
    before = attacked.agent.status["events_error"]
    answers = [httpx.post(attacked.agent.url, content=bad, headers=JSON_HEADERS, timeout=60) for bad in BAD]
    assert {answer.status_code for answer in answers} == {400}
    attacked.agent.send_datagrams(*BAD, operation("x") + b"x", b"{" * 60_000)
    wanted = before + 2 * len(BAD) + 2
    wait_until(lambda: attacked.agent.status["events_error"] == wanted, what="the errors")


def test_ids_of_objects_cannot_break_out_of_an_event(attacked: Attacked) -> None:
    ids = [
        "x\n\nevent: delete\ndata: {}\n\n",
        "x\r\rid: 0\r\r",
        "x\u2028\u2029\x85",
        "</script><script>",
        "../../?a=b&c#d",
        "\x00\x1f\x7f",
        "é🌊",
    ]
    with OpenStream(attacked.agent.url).closing() as stream:
        for id_ in ids:
            answer = httpx.post(attacked.agent.url, content=operation(id_), headers=JSON_HEADERS, timeout=60)
            assert answer.status_code == 204
        operations = (one for one in stream.events() if one.is_operation)
        found = list(islice(operations, len(ids)))
    assert sorted(one.data["id"] for one in found) == sorted(ids)
    refs = {one.data["id"]: one.data["ref"] for one in found}
    assert refs["../../?a=b&c#d"] == "http://shop.example/video/..%2F..%2F%3Fa%3Db%26c%23d"
    assert all(ref.isascii() and ref.isprintable() for ref in refs.values())


def test_ids_from_another_pipeline_or_made_up_begin_anew_or_are_refused(
    attacked: Attacked, services: Any, tmp_path: Path
) -> None:
    # Given: ids of another topic, and ids that no client was sent.
    with served_pipeline(services, tmp_path, partitions=3) as other, other.agents.agent() as agent:
        OperationSource(agent.url).put("theirs")
        other.replicate()
        copy = StreamCopy(position="0")
        copy.follow_once(agent.url, lambda: copy.is_live)
        rows = StreamCopy(position="0")
        rows.follow_once(agent.url, lambda: rows.operations)
    assert copy.position is not None
    digest = attacked.bystander.copy.position.split(".")[1]  # type: ignore[union-attr]
    foreign = [copy.position, rows.position, f"o1.{digest}.9-9-9-9-9-9", f"o1.{digest}.{2**62}"]
    for id_ in foreign:
        stream = OpenStream(attacked.agent.url, id_)
        try:
            assert stream.status == 400 or stream.mode == "reset", id_
            if stream.status == 200:
                assert "last-event-id" not in stream.headers
                opened, reset, *_ = (one for one, _ in zip(stream.events(), range(3), strict=False))
                assert (opened.event, reset.event) == ("open", "reset")
        finally:
            stream.close()


def test_slow_readers_are_cut_off_and_keep_nobody_waiting(attacked: Attacked) -> None:
    """10,000 bytes a minute: less than the least write in the time that the agent gives a client."""
    # Given: a collection of several megabytes, and many clients that ask for it and read next to nothing.
    parents = [f"user/{number:04}-{'x' * 100}" for number in range(40)]
    for first in range(0, 3_000, 150):
        ids = [f"large-{number}" for number in range(first, first + 150)]
        attacked.source.put(*ids, parents=parents)
    attacked.served.replicate()
    before = attacked.agent.status["slow"]
    with ExitStack() as stack:
        slow = [stack.enter_context(_reader_with_small_buffer(attacked.agent.port)) for _ in range(24)]
        for reader in slow:
            reader.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nlast-event-id: 0\r\n\r\n")
            assert reader.recv(170).startswith(b"HTTP/1.1 200")

        # When: another client asks for the same.
        quick = StreamCopy(position="0")
        quick.follow_once(attacked.agent.url, lambda: quick.is_live)
        assert len(quick.objects) > 3_000
        attacked.is_well()

        # Then: they are cut off, although each of them takes a little from time to time.
        def are_cut_off() -> bool:
            for reader in slow:
                with suppress(BlockingIOError, ConnectionError):
                    reader.setblocking(False)
                    reader.recv(int(10_000 / 60 * STALL / 30))
            return bool(attacked.agent.status["slow"] >= before + len(slow))

        wait_until(are_cut_off, 30, "the end of the slow readers")


def _reader_with_small_buffer(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    made.settimeout(60)
    made.connect(("127.0.0.1", port))
    return made


def test_bodies_that_never_end_do_not_keep_others_waiting(attacked: Attacked) -> None:
    head = POST + CHUNKED + b"\r\n"
    with ExitStack() as stack:
        for _ in range(100):
            connection = stack.enter_context(attacked.agent.connect())
            with suppress(ConnectionError):  # refused, because the others have the budget
                connection.sendall(head + b"%x\r\n" % 900_000 + b" " * 900_000)
        attacked.is_well(BODIES)
        answer = httpx.post(attacked.agent.url, content=operation("during"), headers=LINES, timeout=60)
        assert answer.status_code == 204


def test_5000_streams_take_bounded_memory_and_all_are_served(attacked: Attacked) -> None:
    with ExitStack() as stack:
        streams = []
        for _ in range(CONNECTIONS):
            streams.append(connection := stack.enter_context(attacked.agent.connect()))
            connection.sendall(b"GET /?types=none HTTP/1.1\r\nhost: a\r\n\r\n")
        for connection in streams:
            assert connection.recv(12) == b"HTTP/1.1 200"
        attacked.is_well(CONNECTIONS * A_STREAM)
        assert attacked.agent.status["clients"] == CONNECTIONS + 1
    wait_until(lambda: attacked.agent.status["clients"] == 1, what="the end of the streams")
    attacked.memory = max(attacked.memory, attacked.agent.resident)  # freed memory is not given back at once


def test_C26_nothing_that_is_said_to_attackers_has_a_secret(attacked: Attacked) -> None:
    said = json.dumps(attacked.agent.status) + attacked.send(b"nonsense\r\n\r\n").decode()
    assert str(attacked.served.runs.root) not in said
    assert "Traceback" not in attacked.agent.log.read_text()
