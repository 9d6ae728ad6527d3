"""Operators' commands on a followed pipeline: they wait for a round, and no round comes in between."""

import pytest
from tests.support.follow_world import (
    HOLDER,
    MERGING,
    FollowWorld,
    follow_now,
    merge_that_ends,
    round_that_ends,
)
from tests.support.memory_writers import Stream
from tests.support.opened_pipeline import given_opened
from tests.support.pipeline_world import PipelineWorld

from tidemark.clock import wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.log.state.lease import take_log

pytestmark = pytest.mark.unit


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def world(tmp_path, monkeypatch, stream) -> FollowWorld:
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, stream)
    world.kafka.send(b"a", b"b")
    world.follow()
    return world


def deed(what: str) -> AuditEntry:
    return AuditEntry(what, "ann", "to test it", wall_clock())


def test_a_plan_is_executed_although_rounds_go_on(world, stream):
    follow_now(world.house.consensus)
    with world.opened.between_rounds("stream") as opened:
        plan = opened.plan_stop("stream")
        world.kafka.send(b"c")
        assert list(world.follow()[0].held) == ["stream"]
        plan.execute(deed("stop"))
    assert world.house.positions.load("stream").gate is not None
    assert stream.ids == [0, 1]


def test_a_rewind_is_executed_and_the_next_round_delivers_again(world, stream):
    follow_now(world.house.consensus)
    with world.opened.between_rounds("stream") as opened:
        opened.plan_rewind("stream", -1).execute(deed("rewind"))
    stream.streams.clear()
    world.follow()
    assert stream.ids == [0, 1]


def test_a_plan_that_is_not_executed_gives_the_writer_back(world, stream):
    follow_now(world.house.consensus)
    with world.opened.between_rounds("stream") as opened:
        opened.plan_stop("stream")
    assert world.house.positions.load("stream").lease is None


def test_without_a_follow_nothing_is_taken(world):
    before = world.house.positions.load("stream")
    with world.opened.between_rounds("stream") as opened:
        opened.plan_stop("stream")
    assert world.house.positions.load("stream") == before


def test_a_command_waits_for_the_round_that_has_the_writer(world):
    waiting = round_that_ends(world.house.positions, "stream")
    with waiting, world.opened.between_rounds("stream") as opened:
        opened.plan_stop("stream").execute(deed("stop"))
    assert world.house.positions.load("stream").gate is not None


def test_a_rewind_waits_for_a_merge(world):
    with world.opened.between_rounds("stream") as opened:
        plan = opened.plan_rewind("stream", -1)
        with merge_that_ends(world.house.control):
            plan.execute(deed("rewind"))
    assert world.house.positions.load("stream").position == -1


def test_a_round_does_not_wait_for_a_merge_to_register_a_new_writer(world, monkeypatch):
    world.opened = given_opened(world.house, monkeypatch, Stream("late"))
    hold = take_log(world.house.control, MERGING)
    (done,) = world.follow()
    assert (list(done.held), done.failures) == (["late"], [])
    hold.release()
    world.follow()
    assert world.house.positions.load("late").position == 1


def test_another_run_is_not_waited_for(world):
    follow_now(world.house.consensus)
    take(world.house.positions, world.house.positions.load("stream"), "orders.replicate run-7")
    with pytest.raises(LeaseHeld), world.opened.between_rounds("stream"):
        pass


def test_a_round_is_not_waited_for_for_ever(world):
    take(world.house.positions, world.house.positions.load("stream"), HOLDER)
    with pytest.raises(LeaseHeld):
        take(world.house.positions, world.house.positions.load("stream"), "ann", patience=0.1)


def test_a_round_does_not_wait_for_a_round(world):
    take(world.house.positions, world.house.positions.load("stream"), HOLDER)
    with pytest.raises(LeaseHeld):
        take(world.house.positions, world.house.positions.load("stream"), "orders.follow run-2")
