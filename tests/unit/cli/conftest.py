"""The command line, in an installation of its own."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.state.control import LogControl

ORDERS = """
name: orders
source:
  kafka: {topics: ["orders", "refunds"], topic_prefixes: ["eu."]}
writers:
  - {name: cassandra, kind: journal}
  - {name: archive, kind: files, path: "${TIDEMARK_HOME}/archive"}
"""


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def installation(tmp_path, monkeypatch) -> Path:
    """A root with one pipeline; nothing of the real environment reaches it."""
    for name in list(os.environ):
        if name.startswith(("TIDEMARK_", "AIRFLOW")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TIDEMARK_ROOT", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)
    (folder / "orders.yaml").write_text(ORDERS)
    return tmp_path


@pytest.fixture
def run(installation, capsys) -> Callable[..., Ended]:
    """Run ``tidemark`` with these arguments."""
    from tidemark.cli.main import main

    def run_command(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        return Ended(leaving.value.code, *capsys.readouterr())

    return run_command


@pytest.fixture
def closed_port() -> int:
    """A port of this machine where nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def root(installation) -> Path:
    return installation / ".tidemark" / "log" / "orders"


@pytest.fixture
def control(installation, monkeypatch) -> LogControl:
    """The control plane that the commands find."""
    consensus = MemoryConsensus()
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    connection = {"conn_type": "cassandra", "host": "127.0.0.1"}
    monkeypatch.setenv("AIRFLOW_CONN_CASSANDRA_DEFAULT", json.dumps(connection))
    monkeypatch.setattr("tidemark.consensus.control_plane.look_at_cluster", lambda _: consensus)
    return LogControl(consensus, "orders")
