"""A pipeline without a file is forgotten on a real control plane, killed and finished (item 13)."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.log_samples import given_binding, publish_all

from tidemark.cassandra.session import connect
from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.delivery.dead_letters.store import DeadLetter, DeadLetterTable
from tidemark.delivery.state.known_pipelines import is_known
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.status import read_orphan_status
from tidemark.faults import VARIABLE, FaultPoint
from tidemark.log.files.parquet import LogFolder
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.system


@dataclass(frozen=True)
class Orphan:
    """A pipeline that only the control plane knows."""

    name: str
    root: Path
    consensus: LightweightConsensus

    def tidemark(self, *arguments: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tidemark.cli.main", *arguments]
        environment = {**os.environ, **({VARIABLE: fault} if fault else {})}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    def forget(self, *further: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
        done = ("--execute", "--reason", "a test", *further)
        return self.tidemark("pipelines", "forget", self.name, *done, fault=fault)


@pytest.fixture
def orphan(services: Any, tmp_path: Path) -> Orphan:
    session = connect(services.cassandra)
    create_schema(session, services.cassandra.control_replication)
    name, consensus = f"orphan-{uuid4().hex[:12]}", LightweightConsensus(session)
    binding = given_binding(1_000_000, 0, ("orders", 0, 0, 2))
    folder = LogFolder(name, str(tmp_path / "log"))
    publish_all(LogControl(consensus, name), folder, {binding: {("orders", 0): {0: b"a", 1: b"b"}}})
    Positions(consensus, name).register("archive", {"kind": "files"})
    message = {"id": 0, "topic": "orders", "partition": 0, "offset": 0, "timestamp": 0, "key": b"k"}
    letter = DeadLetter(name, "archive", {**message, "value": b"a", "headers": []}, "why", "known", "ann", 1)
    DeadLetterTable(lambda: session).keep([letter])
    return Orphan(name, tmp_path / "log", consensus)


def test_i13_killed_and_run_again_nothing_of_it_is_left_and_in_between_it_looks_unwell(
    services: Any, orphan: Orphan
) -> None:
    # Given: a plan that shows what there is, and changes nothing.
    plan = json.loads(orphan.tidemark("pipelines", "forget", orphan.name, "--log", "--json").stdout)
    assert (plan["writers"], plan["dead_letters"], plan["log"]) == (["archive"], 1, str(orphan.root))
    assert is_known(orphan.consensus, orphan.name)

    # When: the command is killed twice, at different places.
    for point in (FaultPoint.PIPELINE_WRITER_FORGOTTEN, FaultPoint.PIPELINE_FILES_REMOVED):
        killed = orphan.forget("--log", fault=point)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert read_orphan_status(orphan.name, orphan.consensus).log.gate == "stopped"

    # Then: the same command finishes it.
    finished = orphan.forget()
    assert finished.returncode == 0, finished.stderr
    assert not is_known(orphan.consensus, orphan.name)
    assert not orphan.root.exists()
    where = "WHERE pipeline = %s AND writer = 'archive'"
    left = services.session.execute(f"SELECT id FROM tidemark.dead_letter {where}", (orphan.name,))
    assert list(left) == []
