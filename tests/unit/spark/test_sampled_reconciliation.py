"""The comparison of targets that a follow makes on the way: one writer's trouble is its own."""

from dataclasses import dataclass, field

import pytest
from tests.support.follow_world import FollowWorld
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.consensus.lease import Lease
from tidemark.delivery.published_log import LogUnreadable
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.log.expectations import Suite
from tidemark.spark.jobs import follow

pytestmark = pytest.mark.unit


@dataclass
class Targets:
    """What the comparison of a writer's target finds, and from which positions on it was compared."""

    found: dict[str, Exception | bool] = field(default_factory=dict)
    compared: list[tuple[str, int]] = field(default_factory=list)

    def reconcile(self, writer, log, positions, wanted, holder):
        self.compared.append((writer.name, wanted))
        found = self.found.get(writer.name, True)
        if isinstance(found, Exception):
            raise found
        return {"passed": found}


@pytest.fixture
def targets(monkeypatch) -> Targets:
    targets = Targets()
    monkeypatch.setattr(follow, "is_output", lambda writer: True)
    monkeypatch.setattr(follow, "usual_extent", lambda writer, before, everything: before)
    monkeypatch.setattr(follow, "reconcile_now", targets.reconcile)
    return targets


@pytest.fixture
def world(tmp_path, monkeypatch) -> FollowWorld:
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, Stream("copy"), Stream("plain"))
    world.kafka.send(b"a", b"b")
    return world


@pytest.fixture
def reconcile(world) -> follow.SampledReconciliation:
    rounds = world.rounds()
    found = follow.SampledReconciliation(rounds, "orders", Suite())
    rounds.whole()
    return found


TROUBLES = [ConnectionError("no broker"), LeaseHeld("orders", "copy", Lease("orders.replicate run-7", 1, 9))]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda one: type(one).__name__)
def test_a_target_that_cannot_be_compared_does_not_keep_others_from_it(targets, reconcile, trouble):
    targets.found = {"copy": trouble, "plain": False}
    assert reconcile() == ["plain"]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda one: type(one).__name__)
def test_it_is_compared_the_next_time_from_the_same_position_on(targets, reconcile, trouble):
    targets.found = {"copy": trouble}
    reconcile()
    targets.found = {}
    targets.compared.clear()
    assert reconcile() == []
    assert targets.compared == [("copy", -1), ("plain", 1)]


def test_a_log_that_cannot_be_read_ends_the_run(targets, reconcile):
    targets.found = {"copy": LogUnreadable("orders: a list is gone")}
    with pytest.raises(LogUnreadable):
        reconcile()
