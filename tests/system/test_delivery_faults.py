"""Deaths during a delivery, on real services: processes are killed at every point, the next ones go on."""

import json
import signal
import socket
import socketserver
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.delivered_outputs import archived, republished, send, state
from tests.support.services.engines import both_engines
from tests.support.services.log_runs import LogRuns, declare_log, publish_here

from tidemark.connections import Connections, KafkaConnection, SparkConnection
from tidemark.delivery.state.writer_state import Cause
from tidemark.embedded.ports import free_port
from tidemark.faults import FaultPoint

pytestmark = pytest.mark.system


@pytest.fixture
def runs(
    services: Any, spark_engine: SparkConnection | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LogRuns:
    """A pipeline of the test's own with a published log of 200 messages, and one files writer."""
    name = f"deaths-{uuid4().hex[:8]}"
    services.create_topic(name, partitions=2)
    send(services, name, 200, partitions=2)
    cassandra = {"cassandra_default": services.cassandra}
    connections = Connections(kafka=services.kafka, cassandra=cassandra, spark=spark_engine)
    for variable in ("KAFKA", "CASSANDRA"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{variable}_DEFAULT", raising=False)
    runs = declare_log(tmp_path, name, connections, monkeypatch)
    publish_here(runs, "run-1")
    return runs


def block(runs: LogRuns) -> Path:
    """A file where the folder of the writer should be."""
    folder = Path(runs.pipeline.writers[0].path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    return folder


@both_engines
def test_a_delivery_survives_a_death_at_every_point(runs: LogRuns) -> None:
    assert runs.deliver("run-1", FaultPoint.DELIVER_PARTS_WRITTEN).code == -9
    for point in (FaultPoint.DELIVER_FINISHED, FaultPoint.DELIVER_SETTLED, FaultPoint.DELIVER_COMMITTED):
        assert runs.step("deliver", "archive", point).code == -9, point

    ended = runs.deliver("run-1")

    assert ended.summary["writers"]["archive"]["position"] == 199
    assert state(runs).gate is None
    assert archived(runs) == list(range(200))


def test_a_resume_survives_a_death_at_every_point(runs: LogRuns) -> None:
    # Given: the target is broken, and the process that finds it so dies when it has closed the gate.
    broken = block(runs)
    assert runs.step("deliver", "archive", FaultPoint.DELIVER_STOPPED).code == -9
    gate = state(runs).gate
    assert gate is not None
    assert (gate.first_id, gate.last_id, gate.through) == (0, 199, 199)
    broken.unlink()

    # When: resumes die one after the other.
    for point in (
        FaultPoint.RESUME_WRITTEN,
        FaultPoint.DELIVER_FINISHED,
        FaultPoint.RESUME_COMMITTED,
    ):
        assert runs.step("resume", "archive", point).code == -9, point

    # Then: the last one finds everything done or does it.
    assert runs.step("resume", "archive").code == 0
    assert (state(runs).position, state(runs).gate) == (199, None)
    assert archived(runs) == list(range(200))


@both_engines
def test_a_zombie_changes_nothing(runs: LogRuns) -> None:
    # Given: a delivery that is paused when everything is written and nothing committed.
    with runs.paused_delivery("run-1", FaultPoint.DELIVER_FINISHED) as zombie:
        assert state(runs).position == -1

        # When: another one takes its place and finishes; then the first one goes on.
        assert runs.deliver("run-1").summary["writers"]["archive"]["position"] == 199
        before, files = state(runs), archived(runs)
        zombie.send_signal(signal.SIGCONT)
        assert zombie.wait(60) == 0
        outcome = json.loads(zombie.summary.read_text())["writers"]["archive"]

    # Then: its token is stale, and its bytes are the same.
    assert state(runs) == before
    assert archived(runs) == files == list(range(200))
    assert "has lost this writer to another process" in outcome["failure"]


class Forwarder(socketserver.ThreadingTCPServer):
    """The broker under another address, until the test takes it away."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self, port: int, target: int) -> None:
        class Passing(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", target)) as broker:
                    back = threading.Thread(target=pump, args=(broker, self.request), daemon=True)
                    back.start()
                    pump(self.request, broker)

        super().__init__(("127.0.0.1", port), Passing)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def test_F_a_broker_that_is_gone_closes_the_gate_until_it_is_back(
    services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a writer to a broker of its own address, delivered to once.
    name, port = f"gone-{uuid4().hex[:8]}", free_port(set())
    for topic in (name, f"{name}.out"):
        services.create_topic(topic, partitions=1)
    target = KafkaConnection(servers=f"127.0.0.1:{port}")
    connections = Connections(
        kafka=services.kafka,
        cassandra={"cassandra_default": services.cassandra},
        kafka_targets={"kafka_gone": target},
    )
    writer = 'name: archive, kind: kafka, topic: "{name}.out", connection: kafka_gone'
    runs = declare_log(tmp_path, name, connections, monkeypatch, writer=writer)
    send(services, name, 3)
    publish_here(runs, "run-1")
    with Forwarder(port, services.settings.kafka_port):
        assert runs.deliver("run-1").summary["writers"]["archive"]["position"] == 2

    # When: it is gone during the next delivery, and still gone for a resume.
    send(services, name, 4)
    publish_here(runs, "run-2")
    runs.deliver("run-1")
    gate = state(runs).gate
    assert gate is not None
    assert (gate.cause, gate.first_id, gate.last_id, state(runs).position) == (Cause.TARGET, 3, 6, 2)

    # Then: once it is back, a resume delivers what is missing, each message once.
    with Forwarder(port, services.settings.kafka_port):
        assert runs.step("resume", "archive").code == 0
    assert (state(runs).position, state(runs).gate) == (6, None)
    assert republished(services, f"{name}.out") == list(range(7))


def test_what_people_do_survives_a_death_at_every_point(runs: LogRuns) -> None:
    # Given: a writer that waits for id 0.
    broken = block(runs)
    runs.step("deliver", "archive")
    broken.unlink()
    execute = ("--execute", "--reason", "known", "--by", "ann")

    # When: the command that lets the message pass dies, before and after that is decided.
    assert runs.command("gate", "open", runs.name, "archive", *execute).code == 0
    acknowledge = ("offsets", "ack", runs.name, "archive", "0", "--untried", *execute)
    assert runs.command(*acknowledge, fault=FaultPoint.ACKNOWLEDGE_COPIED).code == -9
    assert state(runs).position == -1
    assert runs.command(*acknowledge, fault=FaultPoint.ACKNOWLEDGE_COMMITTED).code == -9
    assert state(runs).position == 0

    # And: a rewind dies just decided, and a resume with the gate just opened.
    rewind = ("offsets", "rewind", runs.name, "archive", "-1", *execute)
    assert runs.command(*rewind, fault=FaultPoint.REWIND_COMMITTED).code == -9
    assert state(runs).position == -1
    broken = block(runs)
    runs.step("deliver", "archive")
    broken.unlink()
    assert runs.step("resume", "archive", FaultPoint.RESUME_OPENED).code == -9

    # Then: everything but what was acknowledged is there, and nothing is left to do.
    assert (state(runs).position, state(runs).gate) == (199, None)
    assert runs.deliver("run-1").summary["writers"]["archive"]["written"] == 0
    assert archived(runs) == list(range(1, 200))

    # And: a redelivery of what was let pass dies when it is written, and is finished by the same command.
    redeliver = ("dead-letters", "redeliver", runs.name, "archive", "0", *execute)
    assert runs.command(*redeliver, fault=FaultPoint.REDELIVER_WRITTEN).code == -9
    assert runs.command(*redeliver).code == 0
    assert runs.command(*redeliver).code == 1
    assert sorted(archived(runs)) == list(range(200))  # it has a file of its own, behind all others
    assert runs.command("dead-letters", "list", runs.name).code == 0
