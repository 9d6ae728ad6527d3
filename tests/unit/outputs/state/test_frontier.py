"""How far readers may read: advanced after every delivery, never too far, never back."""

from contextlib import suppress

import pytest
from tests.support.consensus import RecordingConsensus, SteppingConsensus
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.output_samples import TAINT
from tests.support.output_store_world import OutputStoreWorld

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ObjectKind, Undecided
from tidemark.outputs.errors import Tainted
from tidemark.outputs.model.handover import HandoverOutOfRange
from tidemark.outputs.reader_errors import NotYet
from tidemark.outputs.state.lifecycle import record_taint
from tidemark.outputs.state.progress import ConsumerState, advance_frontier

pytestmark = pytest.mark.unit

REQUESTS = range(1, 16)


def advance(world: OutputStoreWorld) -> int:
    return advance_frontier(world.store, world.progress).frontier


def assert_only_finished_times_are_readable(world: OutputStoreWorld) -> None:
    reached = world.consumers.states[world.output.active.number].reached
    visible = [one for one in world.progress.bindings.every() if one.t < world.output.frontier]
    assert all(one.end <= reached for one in visible)


def test_statement_15_after_a_delivery_every_bound_time_is_readable():
    world = OutputStoreWorld.begun()
    assert world.output.frontier == 11
    world.bind(20)
    world.deliver(1)
    assert world.output.frontier == 21


def test_statement_15_it_advances_where_nothing_was_bound_and_nothing_delivered():
    world = OutputStoreWorld.begun()
    world.bind_nothing(500)
    assert advance(world) == 500


def test_statement_16_a_time_that_the_rendition_has_not_finished_is_not_readable():
    world = OutputStoreWorld.begun()
    world.bind(20)
    world.bind(30)
    assert advance(world) == 20
    with pytest.raises(NotYet):
        world.output.resolve(20)


def test_every_rendition_has_an_upper_of_its_own():
    world = OutputStoreWorld.with_second()
    world.bind(50)
    world.finish(2)
    assert [world.progress.upper(number) for number in (1, 2, 3)] == [50, 51, 10]


def test_a_binding_that_is_half_delivered_is_not_readable():
    world = OutputStoreWorld.begun()
    binding = world.bind(20, width=3)
    world.consumers.states[1] = ConsumerState(binding.base, binding.base)
    assert advance(world) == 20


def test_a_rewind_takes_no_time_back():
    world = OutputStoreWorld.begun(bindings=3)
    state = world.consumers.states[1]
    world.consumers.states[1] = ConsumerState(position=-1, reached=state.reached)
    world.bind_nothing(77)
    assert advance(world) == 77


def test_a_reader_that_finds_it_stale_advances_it():
    world = OutputStoreWorld.begun()
    world.bind(20)
    world.finish(1)  # and the delivery died before it advanced the frontier
    with pytest.raises(NotYet):
        world.output.resolve(20)
    assert advance_frontier(world.store, world.progress).resolve(20).number == 1


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_binding_that_is_made_meanwhile_is_not_passed(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    world.bind_nothing(20)
    consensus.step_in(request_, lambda: world.bind(30))
    advance(world)
    assert_only_finished_times_are_readable(world)
    consensus.step_in_at_last()
    assert advance(world) == 30


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_handover_meanwhile_makes_it_that_of_the_new_rendition(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.with_second(consensus)
    world.bind(50)
    world.finish(1)  # rendition 2 is behind: it has not finished 50

    def rival() -> None:
        with suppress(HandoverOutOfRange):  # the frontier is at 51 already, and rendition 2 at 50
            world.hand_over(2, force=True)

    consensus.step_in(request_, rival)
    advance(world)
    consensus.step_in_at_last()
    assert_only_finished_times_are_readable(world)


@pytest.mark.parametrize("request_", REQUESTS)
def test_of_two_at_once_neither_moves_it_back(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    world.bind(20)
    world.finish(1)

    def rival() -> None:
        world.bind(30)
        world.deliver(1)

    consensus.step_in(request_, rival)
    advance(world)
    consensus.step_in_at_last()
    assert world.output.frontier == 31


def test_a_tainted_rendition_moves_it_no_further_and_stops_no_delivery():
    world = OutputStoreWorld.begun()
    record_taint(world.store, 1, TAINT)
    world.bind_nothing(99)
    assert advance(world) == 11
    with pytest.raises(Tainted):
        world.output.resolve(11)


def test_one_row_is_written():
    world = OutputStoreWorld.begun(RecordingConsensus())
    world.bind(20)
    world.consensus.changes.clear()
    world.deliver(1)
    ((kind, change),) = world.consensus.changes
    assert (kind, list(change.puts)) == (ObjectKind.OUTPUT, ["head"])


def test_nothing_new_costs_two_reads_and_no_commit():
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    version, asked = consensus.whole(world.store.key).version, len(world.consumers.asked)
    consensus.requests = 0
    advance(world)
    assert (consensus.requests, len(world.consumers.asked)) == (2, asked)
    assert consensus.whole(world.store.key).version == version


def test_a_rendition_that_stands_still_costs_three_reads_however_far_behind_it_is():
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    for t in range(20, 2_000, 2):
        world.bind(t)
    assert advance(world) == 20
    consensus.requests = 0
    assert advance(world) == 20
    assert consensus.requests == 3


@pytest.mark.parametrize("fault", Fault)
def test_an_advance_without_an_answer_is_made_up_for_by_the_next(fault):
    flaky = FlakyConsensus(MemoryConsensus())
    world = OutputStoreWorld.begun(flaky)
    world.bind(20)
    world.finish(1)
    flaky.arm(fault)
    with pytest.raises(Undecided):
        advance(world)
    world.bind(30)
    world.deliver(1)
    flaky.land()
    assert world.output.frontier == 31
