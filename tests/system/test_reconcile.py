"""After a delivery a journal is compared with the log: damage closes the gate, and a clean look opens it."""

from pathlib import Path
from signal import SIGKILL
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.log_runs import LogRuns, declare_log, publish_here

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.connections import Connections
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.faults import FaultPoint
from tidemark.journal.action import Action, append
from tidemark.journal.events import EncodedEvent, Events

pytestmark = pytest.mark.system

WRITER = 'name: cassandra, kind: journal, keyspace: "{0}"'


@pytest.fixture
def runs(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogRuns:
    name = f"reconciled_{uuid4().hex[:8]}"
    services.create_topic(name, partitions=1)
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    source = f'topics: ["{name}"]'
    return declare_log(tmp_path, name, connections, monkeypatch, source, writer=WRITER.format(name))


def event(key: str, number: int) -> Action:
    return append(key, 1_794_000_000_000 + number, Events((EncodedEvent(number, (), "json", '{"n":1}'),)))


def delivered(runs: LogRuns, *further: str) -> dict[str, Any]:
    """What a delivery says of the journal."""
    ended = runs.deliver("run-1", further=further)
    return dict(ended.summary["writers"]["cassandra"])


def stopped(runs: LogRuns) -> dict[str, WriterGate]:
    """The gates as they are now; a command that ran here has closed this process's sessions."""
    return OpenPipeline(runs.pipeline, runs.connections).stopped()


def test_damage_closes_the_gate_and_a_clean_verification_opens_it(services: Any, runs: LogRuns) -> None:
    # Given: a journal that was delivered, and is what the log says.
    table = f"{runs.name}.journal"
    services.send(runs.name, [event(key, number) for key in "ab" for number in (1, 2)])
    first = publish_here(runs, "run-1")
    # (The first delivery dies before it compares anything; the second has nothing to write, and does.)
    assert runs.deliver("run-1", FaultPoint.DELIVER_COMMITTED).code == -SIGKILL
    found = delivered(runs)["reconciled"]
    assert (found["passed"], found["entities"], found["same"]) == (True, 2, 2)

    # When: a row is changed, and the entity goes on.
    row = f"WHERE id = 'a' AND topic = '{runs.name}' AND segment = 0 AND seq_nr = 1"
    (old,) = services.session.execute(f"SELECT timestamp, payload_txt FROM {table} {row}")
    update = f"UPDATE {table} SET payload_txt = %s {row} AND timestamp = %s"
    services.session.execute(update, ('{"n":7}', old.timestamp))
    services.send(runs.name, [event("a", 3)])
    publish_here(runs, "run-2")
    outcome = delivered(runs)

    # Then: the gate is closed, and says which entity is different and how.
    gate = stopped(runs)["cassandra"]
    assert (outcome["stopped_now"], outcome["position"], gate.cause) == (True, 4, Cause.VERIFICATION)
    assert f"{runs.name}: a: event 1 was changed: payload_txt" in gate.reason

    # And: to resume is to look again, which leaves it closed while anything is different.
    refused = runs.command("resume", runs.name, "cassandra")
    assert refused.code == 1
    assert "docs/verification.md" in refused.err
    services.session.execute(update, (old.payload_txt, old.timestamp))
    assert runs.command("resume", runs.name, "cassandra").code == 0
    assert stopped(runs) == {}

    # And: delivering an interval again verifies every entity it touches, and moves nothing.
    again = delivered(runs, "--from-t", str(first.t), "--to-t", str(first.t))
    assert (again["reconciled"]["passed"], again["reconciled"]["same"], again["position"]) == (True, 2, 4)
