"""What files and kafka writers have delivered is compared with the log, on real services (item 7)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.services.delivered_outputs import (
    EXECUTE,
    WRITER,
    archived,
    declare_republished,
    make_again,
    republished,
    send,
    state,
)
from tests.support.services.log_runs import LogRuns, publish_here

from tidemark.consensus.control_plane import open_control
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause

pytestmark = pytest.mark.system


def verify(runs: LogRuns, *further: str) -> tuple[int, dict[str, Any]]:
    ended = runs.command("verify", runs.name, "archive", "--json", *further)
    return ended.code, json.loads(ended.out)["writers"][0]


def pretend_delivered(runs: LogRuns, position: int) -> None:
    """A position that promises what was never sent."""
    positions = Positions(open_control(runs.connections), runs.name)
    found = positions.load("archive")
    assert found is not None
    positions.commit(found, position, None, None)


def test_i07_a_file_that_was_removed_between_two_deliveries(
    services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a delivery whose file is removed, and another one.
    runs = declare_republished(services, tmp_path, monkeypatch)
    send(services, runs.name, 5)
    publish_here(runs, "run-1")
    runs.step("deliver", "archive")
    (file,) = Path(runs.pipeline.writers[0].path).glob("*.parquet")
    before = file.read_bytes()
    file.unlink()
    send(services, runs.name, 3)
    publish_here(runs, "run-2")

    # When: the application delivers.
    outcome = runs.deliver("run-2").summary["writers"]["archive"]

    # Then: it has delivered what was new, and the gate is closed over the file that is gone.
    assert (outcome["position"], outcome["written"], outcome["stopped_now"]) == (7, 3, True)
    assert (outcome["reconciled"]["passed"], outcome["reconciled"]["different"]) == (False, 1)
    gate = state(runs).gate
    assert gate is not None
    assert (gate.cause, file.name in gate.reason) == (Cause.VERIFICATION, True)

    # And: a resume makes it again, byte by byte.
    assert runs.command("resume", runs.name, "archive").code == 0
    assert (file.read_bytes(), archived(runs), state(runs).gate) == (before, list(range(8)), None)
    assert verify(runs, "--all")[0] == 0


def test_i07_messages_that_are_not_in_the_topic(
    services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a topic that has what the log says.
    runs = declare_republished(services, tmp_path, monkeypatch, writer=WRITER)
    send(services, runs.name, 5)
    publish_here(runs, "run-1")
    runs.step("deliver", "archive")
    assert verify(runs)[0] == 0

    # When: the last messages are missing.
    send(services, runs.name, 2)
    publish_here(runs, "run-2")
    pretend_delivered(runs, 6)

    # Then: that is noticed, and a resume sends them.
    code, found = verify(runs)
    assert (code, found["differences"][0]["kind"], state(runs).gate.cause) == (1, "end", "verification")
    resumed = runs.command("resume", runs.name, "archive", "--json")
    assert (resumed.code, json.loads(resumed.out)["delivered"]) == (0, 2)
    assert republished(services, f"{runs.name}.out") == list(range(7))

    # And: a hole cannot be mended in place, but by a rewind into a topic that was made again.
    send(services, runs.name, 2)
    publish_here(runs, "run-3")
    pretend_delivered(runs, 8)
    send(services, runs.name, 1)
    publish_here(runs, "run-4")
    runs.step("deliver", "archive")
    code, found = verify(runs)
    assert (code, found["differences"][0]["kind"]) == (1, "hole")
    refused = runs.command("resume", runs.name, "archive")
    assert (refused.code, "cannot be sent any more" in refused.err) == (1, True)
    make_again(services, runs)
    assert runs.command("offsets", "rewind", runs.name, "archive", "-1", *EXECUTE).code == 0
    runs.step("deliver", "archive")
    assert republished(services, f"{runs.name}.out") == list(range(10))
    assert verify(runs, "--all")[0] == 0
