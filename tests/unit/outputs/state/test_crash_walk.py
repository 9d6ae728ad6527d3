"""Every step of a rendition's life dies at every fault point and before every commit, and gets no answer.

Whatever comes next (the same run again, another run, or two at once), what is durable in the end is what one
undisturbed run leaves.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from tests.support.consensus import CrashingConsensus
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.fault_points import HANDOVER, RENDITION, RETIRE, TRIM
from tests.support.faults import Killed
from tests.support.output_samples import TAINT, signed
from tests.support.output_store_world import FIRST, OutputStoreWorld, proposal_for

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus, Undecided
from tidemark.faults import FaultPoint
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.state import handover, lifecycle
from tidemark.outputs.state.progress import advance_frontier
from tidemark.outputs.state.retire import retire
from tidemark.outputs.state.trim import trim

pytestmark = pytest.mark.unit

ONE, OTHER = signed(5), signed(6)
"""Two runs."""
Given = Callable[[Consensus], OutputStoreWorld]


@dataclass(frozen=True)
class Step:
    """A step: the world that it begins in, what it does, and the fault points that it reaches."""

    given: Given
    run: Callable[[OutputStoreWorld, Signature], object]
    points: tuple[FaultPoint, ...]


def given_built(consensus: Consensus) -> OutputStoreWorld:
    world = OutputStoreWorld.begun(consensus)
    world.removal.places.add("accounts_r2")
    world.declare()
    world.finish(2)
    return world


def given_outdated(consensus: Consensus) -> OutputStoreWorld:
    world = OutputStoreWorld.with_second(consensus)
    world.bind(50)
    world.finish(2)
    return world


def given_delivered(consensus: Consensus) -> OutputStoreWorld:
    world = OutputStoreWorld.begun(consensus)
    world.bind(50)
    world.finish(1)
    return world


def create(world: OutputStoreWorld, who: Signature) -> None:
    world.store.create(FIRST)


def declare(world: OutputStoreWorld, who: Signature) -> None:
    lifecycle.declare(world.store, lambda output: proposal_for(output, who, shards=16), is_automatic=True)


def verify(world: OutputStoreWorld, who: Signature) -> None:
    lifecycle.record_verification(world.store, 2, world.evidence(2))


def revoke(world: OutputStoreWorld, who: Signature) -> None:
    lifecycle.revoke_outdated(world.store, world.consumers)


def take_back(world: OutputStoreWorld, who: Signature) -> None:
    lifecycle.revoke(world.store, 2)


def taint(world: OutputStoreWorld, who: Signature) -> None:
    lifecycle.record_taint(world.store, 2, TAINT)


def abandon(world: OutputStoreWorld, who: Signature) -> None:
    lifecycle.abandon(world.store, 2, who)


def advance(world: OutputStoreWorld, who: Signature) -> None:
    advance_frontier(world.store, world.progress)


def hand_over(world: OutputStoreWorld, who: Signature) -> None:
    handover.hand_over(world.store, world.progress, 2, who)


def roll_back(world: OutputStoreWorld, who: Signature) -> None:
    handover.roll_back(world.store, world.progress, 1, who)


def remove(world: OutputStoreWorld, who: Signature) -> None:
    retire(world.store, world.readers, 1, world.removal, who)


def remove_old(world: OutputStoreWorld, who: Signature) -> None:
    trim(world.store, world.readers, world.progress, 35, world.versions)


STEPS: Mapping[str, Step] = {
    "create": Step(OutputStoreWorld, create, (FaultPoint.RENDITION_CREATED,)),
    "declare": Step(OutputStoreWorld.begun, declare, (FaultPoint.RENDITION_DECLARED,)),
    "verify": Step(given_built, verify, (FaultPoint.RENDITION_VERIFIED,)),
    "revoke": Step(given_outdated, revoke, (FaultPoint.RENDITION_REVOKED,)),
    "take back": Step(OutputStoreWorld.with_second, take_back, (FaultPoint.RENDITION_REVOKED,)),
    "taint": Step(given_built, taint, (FaultPoint.RENDITION_TAINTED,)),
    "abandon": Step(given_built, abandon, (FaultPoint.RENDITION_ABANDONED,)),
    "advance": Step(given_delivered, advance, (FaultPoint.FRONTIER_ADVANCED,)),
    "hand over": Step(OutputStoreWorld.with_second, hand_over, HANDOVER),
    "roll back": Step(OutputStoreWorld.handed_over, roll_back, HANDOVER),
    "retire": Step(OutputStoreWorld.handed_over, remove, RETIRE),
    "trim": Step(OutputStoreWorld.handed_over, remove_old, TRIM),
}
POINTS = [(name, point) for name, step in STEPS.items() for point in step.points]


def durable(world: OutputStoreWorld) -> dict[str, Any]:
    """All that is durable, without the runs that did it."""
    output, readers = asdict(world.output), world.readers.load()
    for one in output["renditions"]:
        one |= {"signed": None, "retired": one["retired"] and "yes", "abandoned": one["abandoned"] and "yes"}
    for one in output["handovers"]:
        one |= {"signed": None}
    return output | {
        "pipeline": None,
        "since": readers.since,
        "capabilities": dict(readers.capabilities),
        "bound": world.control.bindings_head().upper,
        "places": world.removal.places,
        "ended": world.removal.ended,
        "versions": world.versions.there,
    }


def undisturbed(step: Step) -> dict[str, Any]:
    world = step.given(MemoryConsensus())
    step.run(world, ONE)
    return durable(world)


def test_every_fault_point_of_a_rendition_is_walked():
    assert {point for _, point in POINTS} == {*RENDITION, *HANDOVER, *RETIRE, *TRIM}


@pytest.mark.parametrize("again", [ONE, OTHER], ids=["the same run again", "another run"])
@pytest.mark.parametrize(("name", "point"), POINTS)
def test_statement_29_a_step_that_was_killed_is_finished_by_the_next(kill_at, name, point, again):
    step = STEPS[name]
    world = step.given(MemoryConsensus())
    reached = kill_at(point)
    with pytest.raises(Killed):
        step.run(world, ONE)
    assert reached == [point]

    step.run(world, again)

    assert durable(world) == undisturbed(step)


@pytest.mark.parametrize(("name", "point"), POINTS)
def test_two_runs_of_a_step_at_once_end_like_one(at_point, name, point):
    step = STEPS[name]
    world = step.given(MemoryConsensus())
    reached = at_point(point, lambda: step.run(world, OTHER))

    step.run(world, ONE)

    assert reached[0] == point
    assert durable(world) == undisturbed(step)


@pytest.mark.parametrize("again", [ONE, OTHER], ids=["the same run again", "another run"])
@pytest.mark.parametrize("commits", range(4))
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_died_before_a_commit_is_finished_by_the_next(name, commits, again):
    step = STEPS[name]
    consensus = CrashingConsensus()
    world = step.given(consensus)
    consensus.left = commits
    try:
        step.run(world, ONE)
    except Killed:
        consensus.left = None
        step.run(world, again)
    consensus.left = None

    assert durable(world) == undisturbed(step)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("commits", range(4))
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_got_no_answer_is_finished_by_the_same_run(name, commits, fault):
    step = STEPS[name]
    flaky = FlakyConsensus(MemoryConsensus())
    world = step.given(flaky)
    flaky.arm(*[None] * commits, fault)
    try:
        step.run(world, ONE)
    except Undecided:
        step.run(world, ONE)
    flaky.disarm()
    flaky.land()

    assert durable(world) == undisturbed(step)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_got_no_answer_is_finished_by_another_run(name, fault):
    step = STEPS[name]
    flaky = FlakyConsensus(MemoryConsensus())
    world = step.given(flaky)
    flaky.arm(fault)
    with pytest.raises(Undecided):
        step.run(world, ONE)

    step.run(world, OTHER)
    flaky.land()

    assert durable(world) == undisturbed(step)
