"""The command line, in an installation of its own."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command_line import ORDERS, Ended, given_failures, publish_two_bindings

from tidemark.clock import wall_clock
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.log.state.control import LogControl
from tidemark.pipeline.loader import find_pipeline
from tidemark.writers.files.writer import FilesWriter


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
    """A port of this machine on which no process listens."""
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


@pytest.fixture
def positions(control, root, monkeypatch) -> Positions:
    """Two published bindings; ``archive`` was stopped by its target after the first one."""
    monkeypatch.setattr(
        "tidemark.delivery.dead_letters.store.DeadLetterTable.keep", lambda self, letters: None
    )
    publish_two_bindings(control, root)
    positions = Positions(control.consensus, "orders")
    writer = FilesWriter("orders", find_pipeline("orders").writers[1])
    hold = take(positions, positions.register("archive", writer.shape), "orders.replicate run-1")
    hold.commit(2, {"orders": 2})
    hold.commit(2, {}, WriterGate(Cause.TARGET, 3, 5, 5, "OSError: no space left", wall_clock()))
    hold.release()
    return positions


@pytest.fixture
def walled(positions) -> Positions:
    """``archive`` was stopped by message 3, once."""
    return given_failures(positions, 1)


@pytest.fixture
def archive(installation) -> Path:
    return installation / ".tidemark" / "archive"
