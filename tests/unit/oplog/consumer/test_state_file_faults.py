"""Crashes between the steps of saving a position: the file has the old or the new one, whole."""

import os
from pathlib import Path

import pytest
from tests.support.fault_points import STATE_FILE
from tests.support.faults import Killed

from tidemark.faults import FaultPoint
from tidemark.oplog.consumer.in_flight import Position
from tidemark.oplog.consumer.state_file import StateFile

pytestmark = pytest.mark.unit

EXPECTED = {
    FaultPoint.STATE_FILE_WRITTEN: "old",
    FaultPoint.STATE_FILE_NAMED: "new",
    FaultPoint.STATE_FILE_DURABLE: "new",
}


@pytest.mark.parametrize("point", STATE_FILE)
def test_a_crash_leaves_one_of_the_two_positions(tmp_path, kill_at, point):
    crashed = StateFile.open(tmp_path / "position")
    crashed.save(Position("old"))
    reached = kill_at(point)
    with pytest.raises(Killed):
        crashed.save(Position("new"))
    crashed.close()
    assert reached
    assert StateFile.open(tmp_path / "position").load() == Position(EXPECTED[point])


@pytest.mark.parametrize("point", STATE_FILE)
def test_the_next_save_after_a_crash_succeeds(tmp_path, kill_at, point):
    crashed = StateFile.open(tmp_path / "position")
    kill_at(point)
    with pytest.raises(Killed):
        crashed.save(Position("first"))
    crashed.close()
    file = StateFile.open(tmp_path / "position")
    file.save(Position("second"))
    assert file.load() == Position("second")


def test_a_crash_before_the_first_save_leaves_no_file(tmp_path, kill_at):
    crashed = StateFile.open(tmp_path / "position")
    kill_at(FaultPoint.STATE_FILE_WRITTEN)
    with pytest.raises(Killed):
        crashed.save(Position("first"))
    crashed.close()
    assert StateFile.open(tmp_path / "position").load() is None


def test_the_content_is_durable_before_the_name_and_the_name_before_the_return(tmp_path, monkeypatch):
    steps: list[str] = []

    def synced(handle: int) -> None:
        steps.append("folder" if Path(f"/proc/self/fd/{handle}").is_dir() else "file")

    monkeypatch.setattr(os, "fsync", synced)
    real = Path.replace

    def named(self, target):
        steps.append("name")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", named)
    StateFile.open(tmp_path / "position").save(Position("new"))
    assert steps == ["file", "name", "folder"]
