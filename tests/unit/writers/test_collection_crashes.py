"""Deliveries of a collection that die between any two writes: later ones make it what it would have been."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fault_points import COLLECTION
from tests.support.faults import Killed, at_point
from tests.support.memory_collection import CollectionWorld

from tidemark.consensus.lease import LEASE
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.faults import FaultPoint

pytestmark = pytest.mark.unit

BINDINGS = [("a=1 b=2 a", "c=3"), ("b=4 d=x e=5", "c f=6"), ("a=7 - -", "")]
POINTS = [
    FaultPoint.DELIVER_PARTS_WRITTEN,
    FaultPoint.DELIVER_FINISHED,
    FaultPoint.DELIVER_SETTLED,
    FaultPoint.DELIVER_COMMITTED,
    FaultPoint.DELIVER_STOPPED,
    FaultPoint.RESUME_WRITTEN,
    FaultPoint.RESUME_COMMITTED,
    FaultPoint.RESUME_OPENED,
    FaultPoint.ACKNOWLEDGE_RECORDED,
    FaultPoint.ACKNOWLEDGE_SETTLED,
    FaultPoint.ACKNOWLEDGE_COMMITTED,
    FaultPoint.FRONTIER_ADVANCED,
    FaultPoint.REWIND_ANNOUNCED,
    FaultPoint.REWIND_COMMITTED,
]
BAD = 5


def given_published(root):
    world = CollectionWorld(root)
    for partitions in BINDINGS:
        world.publish_records(*partitions)
    return world


def pass_bad(world):
    try:
        world.acknowledge(world.started(), BAD)
    except NotPossible:
        return  # it is passed


def go_back(world):
    if world.position(world.started()) > 1:
        world.rewind("accounts", 1)


def steps(world):
    """What happens to the writer, in order; any of them may be repeated."""
    return [
        lambda: world.deliver(world.started()),
        lambda: world.resume(world.started()),
        lambda: pass_bad(world),
        lambda: world.resume(world.started(), singly=1),
        lambda: world.deliver(world.started()),
        lambda: go_back(world),
        lambda: world.deliver(world.started()),
    ]


def outcome(world):
    """Everything that can be told from outside."""
    found = world.found
    return {
        "rows": world.collection.rows,
        "position": world.position(world.started()),
        "gate": world.gate(world.started()),
        "digests": world.digests,
        "acknowledged": world.positions.acknowledged("accounts"),
        "frontier": found.frontier,
        "taint": found.rendition(1).taint,
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    world = given_published(tmp_path_factory.mktemp("whole"))
    for step in steps(world):
        step()
    return outcome(world)


def test_without_a_crash_everything_but_the_bad_message_is_there(whole):
    assert [row.message_id for row in whole["rows"]] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert (whole["position"], whole["gate"], whole["taint"]) == (11, None, None)
    assert sorted(whole["digests"]) == [1_000, 2_000, 3_000]


@pytest.mark.parametrize("time", [1, 2])
@pytest.mark.parametrize("point", POINTS)
def test_what_was_killed_is_finished_by_the_next(tmp_path, monkeypatch, whole, point, time):
    world = given_published(tmp_path)
    at_point(monkeypatch, point, world.die, time)
    for step in steps(world):
        try:
            step()
        except Killed:
            world.live_again()
            world.clock.now += LEASE
            step()
    assert outcome(world) == whole


def test_the_points_of_the_tables_are_walked_with_the_tables():
    assert COLLECTION == (FaultPoint.COLLECTION_CHANGES_WRITTEN,)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["deliver", "resume", "mixed", "pass", "back", "again"]), st.integers(0, 6)
        ),
        max_size=8,
    )
)
def test_histories_with_crashes_between_any_two_writes_end_alike(tmp_path_factory, whole, history):
    world = given_published(tmp_path_factory.mktemp("history"))
    for what, writes in history:

        def dies(done, writes=writes):
            if done >= writes:
                world.die()

        ways = {
            "deliver": lambda: world.deliver(world.started(dies)),
            "resume": lambda: world.resume(world.started(dies)),
            "mixed": lambda: world.resume(world.started(dies), singly=2),
            "again": lambda: world.deliver_again(world.started(dies)),
            "pass": lambda: pass_bad(world),
            "back": lambda: go_back(world),
        }
        if what != "deliver" and world.positions.load("accounts") is None:
            continue
        try:
            ways[what]()
        except Killed:
            world.live_again()
            world.clock.now += LEASE
    for step in [*steps(world)[:5], *steps(world)[3:5]]:
        if world.positions.load("accounts") is None:
            world.deliver(world.started())
        step()
    assert outcome(world) == whole
