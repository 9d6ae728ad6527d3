"""Rounds over several renditions: only the active ones count."""

import pytest
from tests.support.follow_world import FollowWorld
from tests.support.memory_writers import Stream
from tests.support.output_samples import signed
from tests.support.pipeline_world import PipelineWorld

from tidemark.app.follow.readiness import why_not_ready
from tidemark.clock import wall_clock
from tidemark.delivery.renditions.consumers import WriterConsumers
from tidemark.log.bindings.door import Bindings
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.settings import SHAPE
from tidemark.outputs.state import handover, lifecycle
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress
from tidemark.writers import renditions

pytestmark = pytest.mark.unit


@pytest.fixture
def first() -> Stream:
    return Stream()


@pytest.fixture
def second() -> Stream:
    return Stream("stream.r2")


@pytest.fixture
def world(tmp_path, monkeypatch, first, second) -> FollowWorld:
    """A message is delivered, and a second rendition is declared."""
    world = FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, first)
    by_number = {1: first, 2: second}
    monkeypatch.setattr(
        renditions, "build_writer", lambda pipeline, connections, declared, number: by_number[number]
    )
    world.kafka.send(b"a")
    world.follow()
    proposal = RenditionProposal({SHAPE: {"kind": "stream"}}, "another place", 0, signed(2))
    lifecycle.declare(store_of(world), lambda output: proposal)
    return world


def store_of(world):
    return OutputStore(world.house.consensus, "orders", "stream")


def hand_over(world, number):
    consumers = WriterConsumers(world.house.positions, "stream")
    progress = Progress(world.house.control, Bindings(world.house.control), consumers)
    now = Signature("ann", "a test", wall_clock())  # the soak of the other one begins
    handover.hand_over(store_of(world), progress, number, now, force=True)


def test_a_round_delivers_to_both(world, first, second):
    world.kafka.send(b"b")
    (done,) = world.follow()
    assert (list(done.delivered), done.records) == (["stream"], 1)
    assert (first.ids, second.ids) == ([0, 1], [0, 1])


def test_what_a_rendition_beside_cannot_do_fails_no_round(world, first, second):
    second.bad = {0}
    world.kafka.send(b"b")
    (done,) = world.follow()
    assert (done.closed, done.failures, dict(done.needs_person), done.records) == ([], [], {}, 1)
    assert world.house.gate(second) is not None
    world.kafka.send(b"c")
    (done,) = world.follow()
    assert (done.must_wait, first.ids) == (False, [0, 1, 2])
    assert why_not_ready(world.opened, "run-2") is None


def test_one_that_needs_a_person_is_left_out_alone(world, first, second):
    second.kind = "another"  # what it was declared with is not what it is now
    world.house.register(Stream("stream.r2"))
    rounds = world.rounds()
    for value in (b"b", b"c"):
        world.kafka.send(value)
        done = rounds.whole()
        assert (dict(done.needs_person), done.failures) == ({}, [])
    assert (first.ids, second.ids) == ([0, 1, 2], [])


def test_after_a_handover_the_next_round_counts_the_other_one(world, first, second):
    rounds = world.rounds()
    world.kafka.send(b"b")
    rounds.whole()
    hand_over(world, 2)
    first.bad = {2}
    world.kafka.send(b"c")
    done = rounds.whole()
    assert (done.closed, done.records, second.ids) == ([], 1, [0, 1, 2])
    assert world.house.gate(first) is not None


def test_the_active_one_that_stops_stops_the_round(world, first, second):
    rounds = world.rounds()
    world.kafka.send(b"b")
    rounds.whole()
    hand_over(world, 2)
    second.bad = {2}
    world.kafka.send(b"c")
    done = rounds.whole()
    assert (done.closed, first.ids) == (["stream"], [0, 1, 2])
    assert list(world.opened.stopped()) == ["stream"]
