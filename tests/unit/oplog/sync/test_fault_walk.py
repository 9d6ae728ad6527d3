"""A synchronisation that is killed between any two durable steps, and begun again."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.fault_points import SYNC
from tests.support.faults import Killed
from tests.support.operation_topic import operation
from tests.support.sync_world import SyncWorld

from tidemark.faults import AT_ONCE, FaultPoint

pytestmark = pytest.mark.unit

IDS = "abcde"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SyncWorld:
    monkeypatch.setenv(AT_ONCE, "2")
    world = SyncWorld(tmp_path, monkeypatch)
    world.given(operation("a", "insert", 9), operation("z", "insert", 9))
    return world


@pytest.mark.parametrize("time", [1, 2])
@pytest.mark.parametrize("point", SYNC)
def test_R35_whenever_it_is_killed_every_correction_counts_once(world, kill_at, point, time):
    dump = world.dump(*((id_, 10) for id_ in IDS))
    reached = kill_at(point, time)
    report = again = None
    try:
        report = world.run(dump)
    except Killed:
        world.replicate()
        again = world.run(dump)
    assert world.state() == {id_: ("update" if id_ == "a" else "insert", 10) for id_ in IDS}
    corrections = [one for _, one in world.topic.valid() if one.correction]
    assert len(corrections) == len({one.operation.key for one in corrections}) == 6
    assert reached or time == 2
    assert (report or again or {})["pipeline"] == "events"


@pytest.mark.parametrize("time", [1, 2, 3])
def test_a_sending_that_was_killed_is_finished_by_its_own_comparison(world, kill_at, time):
    diff = world.compare(world.validate(world.dump(*((id_, 10) for id_ in IDS))))
    kill_at(FaultPoint.SYNC_BATCH_SENT, time)
    with pytest.raises(Killed):
        world.sync.send(diff)
    sent: Any = world.sync.send(diff)
    assert (sent.sent, sent.overtaken, len(world.topic.sent)) == (6, 0, 6)
