"""docs/migration.md as a person follows it: its commands, in its order, on real Kafka and Cassandra.

Airflow is played by a stand-in that starts no run of a DAG which is unknown or paused; its own commands are
run by house/test_migration_airflow.py.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.journal_runs import given_topic, read_pointers, read_visible, send
from tests.support.services.journal_world import given_keyspace
from tests.support.services.log_runs import LogRuns, ended_here, publish_here
from tests.support.services.page_commands import page_commands
from tests.support.services.their_tables import given_record, given_their_tables

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cli.main import main as tidemark
from tidemark.connections import Connections
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.pipeline.loader import find_pipeline, load_pipelines
from tidemark.pipeline.model import JournalDeclaration
from tidemark.settings import ROOT, Settings

pytestmark = pytest.mark.system

WRITER = "cassandra"
DECLARED = {"name": WRITER, "kind": "journal"}


@dataclass
class Desk:
    """A person's terminal: ``tidemark`` and the shell are real, Airflow is a stand-in."""

    folder: Path
    connections: Connections
    names: dict[str, str]
    """What the page calls something, and what it is called here."""
    paused: dict[str, bool] = field(default_factory=dict)
    """The DAGs that Airflow knows."""
    runs: dict[tuple[str, str], str] = field(default_factory=dict)

    def run(self, command: str) -> None:
        """One command of the page, which has to succeed."""
        here = re.sub(r"\borders(2?)\b", rf"{self.names['orders']}\1", command)
        here = here.replace("keyspace: journal", f"keyspace: {self.names['journal']}")
        first = here.split()[0]
        words = shlex.split(here.partition("|")[0]) if first in ("tidemark", "bin/airflow", "until") else []
        if words[:1] == ["tidemark"]:
            ended = ended_here(lambda: tidemark(words[1:]))
            assert ended.code == 0, (here, ended)
        elif words[:2] == ["bin/airflow", "dags"]:
            self.airflow(*words[2:])
        elif words[:4] == ["until", "bin/airflow", "dags", "reserialize;"]:
            self.airflow("reserialize")
        elif words[:1] == ["until"]:
            assert words[1:4] == ["bin/airflow", "dags", "state"], here
            assert self.runs[words[4], words[5]] == "success"
        else:
            subprocess.run(["bash", "-euc", here], cwd=self.folder, check=True)

    def airflow(self, action: str, dag_id: str = "", option: str = "", run_id: str = "") -> None:
        """``bin/airflow dags ACTION``."""
        if action == "reserialize":
            there = [f"{pipeline.name}.replicate" for pipeline in load_pipelines().pipelines]
            self.paused = {dag: self.paused.get(dag, True) for dag in there}
            return
        assert dag_id in self.paused, f"Airflow does not know {dag_id} yet"
        if action == "trigger":
            assert option == "--run-id"
            assert not self.paused[dag_id], f"{dag_id} is paused: its run would wait for ever"
            self.replicate(dag_id.removesuffix(".replicate"), run_id)
            self.runs[dag_id, run_id] = "success"
        else:
            self.paused[dag_id] = {"pause": True, "unpause": False}[action]

    def replicate(self, name: str, run_id: str) -> None:
        """What the DAG does."""
        opened = OpenPipeline(find_pipeline(name), self.connections)
        if opened.begin_run(run_id, retry=True).t is not None:
            publish_here(LogRuns(name, self.folder, self.connections), run_id)
        done = deliver_to(
            opened.writer(WRITER),
            opened.log,
            opened.positions,
            run_id,
            write_parts_here,
            limit=10**9,
            reload=lambda: opened.positions.load(WRITER),
        )
        assert (done.gate, done.position) == (None, opened.log.end)


@pytest.fixture
def desk(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    for variable in ("KAFKA", "CASSANDRA"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{variable}_DEFAULT", raising=False)
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TIDEMARK_PIPELINES", str(folder))
    name = f"moved{uuid4().hex[:8]}"
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    with given_keyspace(services.cassandra, "moved") as keyspace, given_topic(connections, name):
        yield Desk(tmp_path, connections, {"orders": name, "journal": keyspace})
    for log in (Settings.read().home / "log").glob(f"{name}*"):
        shutil.rmtree(log)


def test_i19_the_page_works_as_it_is_written(desk: Desk, services: Any) -> None:
    """Item 19: followed literally, it waited for ever, was refused and gave no command for its conditions."""
    topic, keyspace = desk.names["orders"], desk.names["journal"]
    declared = JournalDeclaration.model_validate(DECLARED | {"keyspace": keyspace}, context={})

    def sent(*numbers: int) -> None:
        send(desk.connections, topic, [given_record(p, n) for n in numbers for p in range(3)])

    # The replicator has come to offset 2 everywhere; offsets 3 and 4 are new.
    sent(1, 2, 3, 4, 5)
    given_their_tables(services.session, declared, topic, {0: 2, 1: 2, 2: 2})
    for command in page_commands(ROOT / "docs" / "migration.md"):
        desk.run(command)
        if "hand-back" in command and "--execute" in command:
            # It goes on to offset 5, and is stopped again; offset 6 is new.
            sent(6, 7)
            given_their_tables(services.session, declared, topic, {0: 5, 1: 5, 2: 5})

    visible = read_visible(services.session, keyspace, topic)
    numbers = {key: sorted(n for _, n, _ in entity["rows"]) for key, entity in visible.items()}
    assert numbers == {f"entity-{partition}": [1, 2, 3, 4, 5, 6, 7] for partition in range(3)}
    assert read_pointers(services.session, keyspace, topic) == {0: 6, 1: 6, 2: 6}
    assert [one.name for one in load_pipelines().pipelines if one.name.startswith(topic)] == [f"{topic}2"]


def test_i19_the_check_says_what_is_not_ready_and_exits_with_1(desk: Desk, services: Any) -> None:
    topic = desk.names["orders"]
    first, *_ = page_commands(ROOT / "docs" / "migration.md")
    desk.run(first)
    ended = ended_here(lambda: tidemark(["journal", "check", topic]))
    assert (ended.code, "does not exist" in ended.out, "NO  pointers" in ended.out) == (1, True, True), ended
    assert f"ok  cleanup.policy of {topic}" in ended.out
    assert f"ok  group replicator-{topic}" in ended.out
