"""``tidemark oplog``: send and tail, against a scripted agent."""

import io
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from tests.support.command_line import Ended
from tests.support.model_agent import ModelAgent
from tests.support.scripted_agent import STREAM, ScriptedAgent, Silence, answer

pytestmark = pytest.mark.unit

Run = Callable[..., Ended]
LOG = [("insert", "a"), ("insert", "b"), ("delete", "b")]


def streaming() -> ScriptedAgent:
    model = ModelAgent(LOG)
    return ScriptedAgent(lambda request: [STREAM, model.stream(request.last_event_id), Silence()])


@pytest.fixture(autouse=True)
def _same_handler_after() -> object:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def says(text: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))

    return says


def test_an_operation_is_sent_from_arguments(run: Run):
    with ScriptedAgent(lambda request: [answer(204)]) as agent:
        ended = run("oplog", "send", agent.url, "insert", "video", "x", "--parent", "user/1")
    assert (ended.code, ended.out) == (0, "1 operation acknowledged.\n")
    said = json.loads(agent.requests[0].body)
    assert said == {"event": "insert", "parents": ["user/1"], "type": "video", "id": "x"}


def test_lines_are_sent_from_stdin(run: Run, stdin):
    stdin(b'{"event":"insert","parents":[],"type":"video","id":"a"}\n' * 3)
    with ScriptedAgent(lambda request: [answer(204)]) as agent:
        ended = run("oplog", "send", agent.url, "--json")
    assert json.loads(ended.out) == {"acknowledged": 3}


def test_the_token_comes_from_the_environment(run: Run, monkeypatch):
    monkeypatch.setenv("TIDEMARK_OPLOG_TOKEN", "secret")
    with ScriptedAgent(lambda request: [answer(204)]) as agent:
        run("oplog", "send", agent.url, "insert", "video", "x")
    assert agent.requests[0].headers["authorization"] == "Bearer secret"


def test_the_token_comes_from_a_file(run: Run, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    with ScriptedAgent(lambda request: [answer(204)]) as agent:
        run("oplog", "send", agent.url, "insert", "video", "x", "--token-file", str(tmp_path / "token"))
    assert agent.requests[0].headers["authorization"] == "Bearer secret"


def test_a_bad_line_ends_with_1_and_what_precedes_it_is_acknowledged(run: Run, stdin):
    stdin(b'{"event":"insert","parents":[],"type":"video","id":"a"}\nbad\n')
    with ScriptedAgent(lambda request: [answer(204)]) as agent:
        ended = run("oplog", "send", agent.url)
    assert ended.code == 1
    assert "Line 2 is refused" in ended.err
    assert len(agent.requests) == 1


def test_a_refusal_ends_with_1(run: Run):
    with ScriptedAgent(lambda request: [answer(401, b'{"error": "no token"}')]) as agent:
        ended = run("oplog", "send", agent.url, "insert", "video", "x")
    assert (ended.code, "no token" in ended.err) == (1, True)


def test_what_is_not_acknowledged_ends_with_3(run: Run, closed_port):
    ended = run("oplog", "send", f"http://127.0.0.1:{closed_port}", "insert", "video", "x", "--attempts", "1")
    assert ended.code == 3
    assert "from line 1 on" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("send", "http://127.0.0.1:1", "insert"),
        ("tail", "http://127.0.0.1:1", "--replicate", "--since", "5"),
        ("tail", "http://127.0.0.1:1", "--since", "yesterday"),
        ("tail", "http://127.0.0.1:1", "--count", "0"),
        ("tail", "orders"),
    ],
)
def test_a_command_line_that_is_not_valid_ends_with_2(run: Run, arguments):
    assert run("oplog", *arguments).code == 2


@pytest.mark.parametrize("target", ["udp://127.0.0.1:{}", "http://127.0.0.1:{} --udp"])
def test_an_operation_is_sent_by_udp(run: Run, target):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(60)
        address = target.format(listener.getsockname()[1]).split()
        ended = run("oplog", "send", *address, "delete", "video", "x")
        assert json.loads(listener.recv(65_535))["event"] == "delete"
    assert (ended.code, ended.out) == (0, "1 operation sent.\n")


@pytest.mark.parametrize("url", ["udp://127.0.0.1", "udp://127.0.0.1:port"])
def test_an_udp_address_needs_a_port(run: Run, url):
    assert run("oplog", "send", url, "delete", "video", "x").code == 1


def test_a_pipeline_stands_for_its_agent(run: Run, monkeypatch):
    with streaming() as agent:
        declared = SimpleNamespace(agent=SimpleNamespace(address=("0.0.0.0", agent.port)))
        monkeypatch.setattr("tidemark.pipeline.loader.find_pipeline", lambda name: declared)
        ended = run("oplog", "tail", "changes", "--replicate", "--until-live")
    assert ended.code == 0


def test_a_pipeline_that_is_not_declared_is_an_error(run: Run):
    assert run("oplog", "tail", "ordres").code == 1


def test_a_replication_is_printed_until_it_is_live(run: Run):
    with streaming() as agent:
        ended = run("oplog", "tail", agent.url, "--replicate", "--until-live")
    assert ended.out.splitlines() == [
        "# reset",
        "2026-01-02T03:04:05.678Z  insert  video/a  [user/1]",
        "# live",
    ]


def test_a_stream_is_printed_as_lines_of_json(run: Run):
    with streaming() as agent:
        ended = run("oplog", "tail", agent.url, "--replicate", "--count", "1", "--json", "--types", "video")
    said = [json.loads(line) for line in ended.out.splitlines()]
    assert said[0] == {"event": "reset", "event_id": "r1.3.0"}
    assert said[1] == {
        "event": "insert",
        "event_id": "r1.3.1",
        "timestamp": "2026-01-02T03:04:05.678Z",
        "parents": ["user/1"],
        "type": "video",
        "id": "a",
    }
    assert agent.requests[0].target == "/?types=video"


def test_a_state_file_continues_after_the_last_line(run: Run, tmp_path):
    position = tmp_path / "position"
    position.write_text("o1.0\n")
    with streaming() as agent:
        first = run("oplog", "tail", agent.url, "--count", "2", "--state-file", str(position))
        second = run("oplog", "tail", agent.url, "--count", "1", "--state-file", str(position))
    assert [line.split()[1:3] for line in first.out.splitlines()] == [
        ["insert", "video/a"],
        ["insert", "video/b"],
    ]
    assert [line.split()[1:3] for line in second.out.splitlines()] == [["delete", "video/b"]]


@pytest.mark.parametrize("since", ["2026-01-02T03:04:05.678Z", "1767323045678"])
def test_a_time_is_asked_for_in_milliseconds(run: Run, since):
    with ScriptedAgent(lambda request: [answer(401)]) as agent:
        ended = run("oplog", "tail", agent.url, "--since", since)
    assert ended.code == 1
    assert agent.requests[0].target == "/?since=1767323045678"


def test_a_tail_that_is_terminated_keeps_its_position(tmp_path):
    position = tmp_path / "position"
    position.write_text("o1.0\n")
    with streaming() as agent:
        command = ["oplog", "tail", agent.url, "--state-file", str(position)]
        with subprocess.Popen(
            [sys.executable, "-m", "tidemark.cli.main", *command], stdout=subprocess.PIPE, text=True
        ) as tail:
            assert tail.stdout is not None
            assert [tail.stdout.readline().split()[1] for _ in LOG] == ["insert", "insert", "delete"]
            tail.terminate()
            assert tail.wait(60) == 128 + signal.SIGTERM
    # It may have been terminated between writing the last line and reporting it as done.
    assert position.read_text() in ("o1.2\n", "o1.3\n")
