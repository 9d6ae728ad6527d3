"""The end of a rendition: only when no reader needs it, in an order in which nothing is dropped too early."""

import pytest
from tests.support.consensus import SteppingConsensus
from tests.support.output_samples import TAINT, signed
from tests.support.output_store_world import OutputStoreWorld, RemovalInMemory

from tidemark.clock import SECOND
from tidemark.outputs.errors import ReasonMissing, StillActive, TransitionRefused
from tidemark.outputs.model.capability import GRACE, Capability
from tidemark.outputs.model.rendition import Rendition, Signature
from tidemark.outputs.model.retention import retirable
from tidemark.outputs.reader_errors import Forgotten, StillNeeded
from tidemark.outputs.state.lifecycle import abandon, record_taint
from tidemark.outputs.state.retire import begin_retirement, finish_retirement, retire

pytestmark = pytest.mark.unit

TERM = 60 * SECOND
REQUESTS = range(1, 20)


def given_reader(world: OutputStoreWorld, t: int, name: str = "a") -> None:
    world.readers.register(Capability(name, t, world.clock() + TERM, "a test"))


def assert_nothing_was_dropped(world: OutputStoreWorld) -> None:
    assert (world.removal.calls, world.removal.places) == ([], {"accounts", "accounts_r2"})


# whole


def test_statement_24_a_rendition_goes_when_every_capability_is_past_its_handover():
    world = OutputStoreWorld.handed_over()
    given_reader(world, 42)
    world.retire(1)
    assert world.states == {1: "dropped", 2: "active"}
    assert (world.removal.calls, world.removal.places) == (["end 1", "drop 1"], {"accounts_r2"})
    assert world.readers.load().since == world.output.since == 41
    with pytest.raises(Forgotten):
        world.output.resolve(40)


@pytest.mark.parametrize("t", [0, 40, 41])
def test_statement_25_not_while_a_capability_is_at_the_handover_or_before(t):
    world = OutputStoreWorld.handed_over()
    given_reader(world, t)
    with pytest.raises(StillNeeded):
        world.retire(1)
    assert_nothing_was_dropped(world)
    assert world.states == {1: "superseded", 2: "active"}
    assert [world.output.resolve(at).number for at in (t, 40)] == [1 if t < 41 else 2, 1]


def test_statement_21_capabilities_tell_which_renditions_are_needed():
    world = OutputStoreWorld.handed_over()
    given_reader(world, 30)

    def numbers() -> list[int]:
        return [one.number for one in retirable(world.output, world.readers.load(), world.clock())]

    assert numbers() == []
    world.readers.move_forward("a", 42)
    assert numbers() == [1]


def test_an_expired_reader_keeps_nothing():
    world = OutputStoreWorld.handed_over()
    given_reader(world, 30)
    world.clock.now += TERM + GRACE
    world.retire(1)
    assert world.states[1] == "dropped"


def test_who_retired_it_and_why_is_kept():
    world = OutputStoreWorld.handed_over()
    for at in (5, 6):
        retire(world.store, world.readers, 1, world.removal, signed(at))
    assert world.output.rendition(1).retired == signed(5)


def test_without_a_reason_not_even_times_are_forgotten():
    world = OutputStoreWorld.handed_over()
    with pytest.raises(ReasonMissing):
        retire(world.store, world.readers, 1, world.removal, Signature("ann", " ", 1))
    assert world.readers.load().since == 0


def test_an_abandoned_rendition_goes_and_no_time_is_forgotten():
    world = OutputStoreWorld.with_second()
    given_reader(world, 0)
    abandon(world.store, 2, signed(5))
    world.retire(2)
    assert (world.states, world.readers.load().since) == ({1: "active", 2: "dropped"}, 0)


def test_a_tainted_rendition_goes_after_a_handover_and_not_before():
    world = OutputStoreWorld.with_second()
    record_taint(world.store, 1, TAINT)
    with pytest.raises(StillActive):
        world.retire(1)
    world.hand_over(2)
    world.retire(1)
    assert world.states == {1: "dropped", 2: "active"}


def test_a_rendition_that_is_being_built_is_refused():
    world = OutputStoreWorld.with_second()
    with pytest.raises(TransitionRefused):
        world.retire(2)
    assert_nothing_was_dropped(world)


def test_nothing_is_dropped_of_a_rendition_that_is_not_retiring():
    world = OutputStoreWorld.handed_over()
    for number in (1, 2):
        with pytest.raises(TransitionRefused):
            finish_retirement(world.store, number, world.removal)
    assert_nothing_was_dropped(world)


def test_a_consumer_that_cannot_end_keeps_the_place():
    world = OutputStoreWorld.handed_over()

    class Held(RemovalInMemory):
        def end_consumer(self, rendition: Rendition) -> None:
            raise TimeoutError("a delivery has the lease")

    with pytest.raises(TimeoutError):
        retire(world.store, world.readers, 1, Held(world.removal.places), signed(5))
    assert_nothing_was_dropped(world)
    assert world.states[1] == "retiring"
    world.retire(1)
    assert world.states[1] == "dropped"


# at once


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("t", [0, 40, 41])
def test_a_reader_that_registers_during_a_retirement_stops_it_or_is_refused(request_, t):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.handed_over(consensus)
    outcome = []

    def register() -> None:
        try:
            given_reader(world, t)
            outcome.append("registered")
        except Forgotten:
            outcome.append("refused")

    consensus.step_in(request_, register)
    try:
        world.retire(1)
        outcome.append("dropped")
    except StillNeeded:
        outcome.append("kept")
    consensus.step_in_at_last()
    if t < 41:
        assert set(outcome) in ({"registered", "kept"}, {"refused", "dropped"})
    if "registered" in outcome:
        # Every time from its capability on has its rendition, and that has its place.
        numbers = [world.output.resolve(at) for at in range(t, world.output.frontier)]
        assert {one.place for one in numbers} <= world.removal.places


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_rollback_during_a_retirement_stops_it_or_is_refused(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.handed_over(consensus)
    outcome = []

    def roll_back() -> None:
        try:
            world.roll_back(1)
            outcome.append("rolled back")
        except TransitionRefused:
            outcome.append("refused")

    consensus.step_in(request_, roll_back)
    try:
        world.retire(1)
        outcome.append("dropped")
    except StillActive:
        outcome.append("kept")
    consensus.step_in_at_last()
    assert set(outcome) in ({"rolled back", "kept"}, {"refused", "dropped"})
    assert world.output.active.place in world.removal.places


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_rendition_that_was_active_again_meanwhile_forgets_those_times_too(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.handed_over(consensus)

    def back_and_forth() -> None:
        if world.states[1] == "superseded":
            world.roll_back(1)
            world.roll_back(2)

    consensus.step_in(request_, back_and_forth)
    world.retire(1)
    consensus.step_in_at_last()
    assert world.states == {1: "dropped", 2: "active"}
    assert world.readers.load().since >= world.output.since == world.output.end_of_use(1)


@pytest.mark.parametrize("request_", REQUESTS)
def test_two_at_once_end_like_one(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.handed_over(consensus)
    consensus.step_in(request_, lambda: world.retire(1))
    world.retire(1)
    consensus.step_in_at_last()
    assert (world.states[1], world.removal.places) == ("dropped", {"accounts_r2"})


def test_a_handover_to_a_retiring_rendition_is_refused():
    world = OutputStoreWorld.handed_over()
    begin_retirement(world.store, world.readers, 1, signed(5))
    with pytest.raises(TransitionRefused):
        world.roll_back(1)
    with pytest.raises(TransitionRefused):
        world.hand_over(1, force=True)
