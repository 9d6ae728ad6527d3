"""The page about consumers: its Python and shell examples run, and it names every error and option."""

import asyncio
import inspect
import json
import re
import socket
import subprocess
import textwrap
from collections.abc import Iterator

import pytest
from tests.support.model_agent import ModelAgent
from tests.support.scripted_agent import STREAM, ScriptedAgent

import tidemark
from tidemark.errors import TidemarkError
from tidemark.oplog.consumer import backoff, errors
from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

PAGE = (ROOT / "docs" / "oplog.md").read_text()
BLOCKING, LOOP, PRODUCER = re.findall(r"```python\n(.*?)```", PAGE, re.S)
(SHELL,) = re.findall(r"```bash\n(.*?)```", PAGE, re.S)
LOG = [("insert", "a"), ("insert", "b"), ("delete", "a"), ("insert", "c")]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[ScriptedAgent]:
    """A replication that ends; a second connection is denied, which ends an example."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(backoff, "FIRST", 0.001)
    answers = iter([[STREAM, ModelAgent(LOG).stream("0")]])
    refused = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with ScriptedAgent(lambda request: next(answers, [refused])) as found:
        yield found


def test_the_blocking_example(agent: ScriptedAgent) -> None:
    names: dict[str, object] = {}
    with pytest.raises(errors.StreamDenied):
        exec(BLOCKING.replace("http://127.0.0.1:8042", agent.url), names)
    assert names["videos"] == {"b": None, "c": None}


def test_the_example_with_an_event_loop(agent: ScriptedAgent) -> None:
    imports, body = LOOP.replace("http://127.0.0.1:8042", agent.url).split("\n\nvideos = {}\n")
    names: dict[str, object] = {"videos": {}}
    exec(f"{imports}\nasync def work():\n{textwrap.indent(body, '    ')}", names)
    with pytest.raises(errors.StreamDenied):
        asyncio.run(names["work"]())
    assert names["videos"] == {"b": None, "c": None}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        found.settimeout(60)
        yield found


def test_the_producer_in_python(listener: socket.socket) -> None:
    names: dict[str, socket.socket] = {}
    exec(PRODUCER.replace("8042", str(listener.getsockname()[1])), names)
    names["agent"].close()
    assert json.loads(listener.recv(65_535))["event"] == "update"


def test_the_producer_in_the_shell(listener: socket.socket) -> None:
    subprocess.run(["bash", "-c", SHELL.replace("8042", str(listener.getsockname()[1]))], check=True)
    assert json.loads(listener.recv(65_535))["id"] == "x345"


def test_every_error_of_a_consumer_is_on_the_page() -> None:
    own = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, TidemarkError)
    }
    unnamed = {name for name in own if f"`{name}`" not in PAGE}
    assert unnamed == {"TidemarkError", "StreamGarbled"}


@pytest.mark.parametrize("kind", [tidemark.OpLog, tidemark.AsyncOpLog])
def test_every_option_of_a_consumer_is_on_the_page(kind: type) -> None:
    options = set(inspect.signature(kind).parameters) - {"url"}
    assert {option for option in options if f"`{option}`" not in PAGE} == set()
