"""Handovers through the control plane: at the frontier, all in one step, and one of two at once."""

from dataclasses import replace

import pytest
from tests.support.consensus import BusyConsensus, RecordingConsensus, SteppingConsensus
from tests.support.output_samples import signed
from tests.support.output_store_world import OutputStoreWorld

from tidemark.consensus.objects import ObjectKind
from tidemark.outputs.model.handover import (
    EvidenceOutdated,
    GateNotOpen,
    HandoverOutOfRange,
    NotVerified,
)
from tidemark.outputs.model.reading import activity
from tidemark.outputs.model.updates import accumulate
from tidemark.outputs.state.handover import hand_over, roll_back
from tidemark.outputs.state.lifecycle import revoke
from tidemark.outputs.state.progress import advance_frontier

pytestmark = pytest.mark.unit

REQUESTS = range(1, 25)


def assert_one_rendition_at_every_time(world: OutputStoreWorld) -> None:
    """Statements 13 and 14: what is active accumulates to one rendition, at every readable time."""
    updates = activity(world.output)
    for t in range(world.output.handovers[0].h, world.output.frontier):
        assert list(accumulate(updates, t).values()) == [1]


def bind_and_deliver(world: OutputStoreWorld, *numbers: int) -> None:
    world.bind(world.control.bindings_head().upper)
    for number in numbers:
        world.finish(number)
    advance_frontier(world.store, world.progress)


# one step


def test_statement_13_and_14_a_handover_is_one_commit_of_both_states_and_the_frontier():
    world = OutputStoreWorld.with_second(RecordingConsensus())
    world.bind_nothing(60)
    world.consensus.changes.clear()
    assert world.hand_over(2) == 41
    ((kind, change),) = world.consensus.changes
    assert kind is ObjectKind.OUTPUT
    assert sorted(change.puts) == [
        "handover/00000000000000000041",
        "head",
        "rendition/00000000000000000001",
        "rendition/00000000000000000002",
    ]
    assert (world.states, world.output.frontier) == ({1: "superseded", 2: "active"}, 60)
    assert_one_rendition_at_every_time(world)


def test_statement_17_it_is_at_the_frontier_and_rewrites_no_history():
    world = OutputStoreWorld.handed_over()
    assert [world.output.resolve(t).number for t in (0, 40, 41)] == [1, 1, 2]


def test_where_both_have_finished_everything_a_microsecond_passes_and_nothing_is_waited_for():
    world = OutputStoreWorld.with_second()
    assert (world.output.frontier, world.control.bindings_head().upper) == (41, 41)
    assert world.hand_over(2) == 41
    assert (world.output.frontier, world.control.bindings_head().upper) == (42, 42)
    assert world.bind(0).t == 42


def test_where_the_next_binding_is_at_the_frontier_it_has_to_be_delivered_first():
    world = OutputStoreWorld.with_second()
    world.bind_nothing(50)
    advance_frontier(world.store, world.progress)
    world.bind(50)
    with pytest.raises(HandoverOutOfRange) as refusal:
        world.hand_over(2)
    assert (refusal.value.h, refusal.value.upper) == (50, 50)
    assert world.control.bindings_head().upper == 51


def test_a_rendition_that_is_behind_is_refused_and_no_time_passes():
    world = OutputStoreWorld.with_second()
    world.bind(50)
    world.deliver(1)
    with pytest.raises(HandoverOutOfRange) as refusal:
        world.hand_over(2, force=True)
    assert (refusal.value.h, refusal.value.upper) == (51, 50)
    assert world.control.bindings_head().upper == 51


def test_the_same_step_again_gives_the_same_handover():
    world = OutputStoreWorld.with_second()
    first = hand_over(world.store, world.progress, 2, signed(7))
    before = world.output
    assert hand_over(world.store, world.progress, 2, signed(7)) == first
    assert world.output == before


def test_another_process_gets_the_handover_that_is_there():
    world = OutputStoreWorld.with_second()
    hand_over(world.store, world.progress, 2, signed(7))
    assert hand_over(world.store, world.progress, 2, signed(8)).signed == signed(7)


def test_a_step_that_is_repeated_after_a_rollback_does_not_hand_over_again():
    world = OutputStoreWorld.with_second()
    first = hand_over(world.store, world.progress, 2, signed(7))
    world.roll_back(1)
    assert hand_over(world.store, world.progress, 2, signed(7)) == first
    assert world.states == {1: "active", 2: "superseded"}


def test_details_are_read_in_the_step_and_kept():
    world = OutputStoreWorld.with_second()
    done = hand_over(world.store, world.progress, 2, signed(7), details=lambda: {"orders.r2": [4, 9]})
    assert world.output.handovers[-1].details == done.details == {"orders.r2": [4, 9]}


def test_readers_that_advance_the_frontier_at_every_moment_do_not_keep_it_from_its_end():
    consensus = BusyConsensus()
    world = OutputStoreWorld.with_second(consensus)
    consensus.meanwhile = lambda: advance_frontier(world.store, world.progress)
    assert world.hand_over(2) == 41


def test_what_was_delivered_to_the_rendition_alone_since_its_proof_outdates_nothing():
    world = OutputStoreWorld.with_second()
    proof = world.evidence(2)
    bind_and_deliver(world, 2)
    revoke(world.store, 2)
    done = hand_over(world.store, world.progress, 2, signed(7), proof=proof)
    assert (done.h, done.evidence, world.output.frontier) == (42, proof, 43)


@pytest.mark.parametrize(("number", "change"), [(1, {"position": 9}), (2, {"acknowledged": (3,)})])
def test_anything_else_outdates_a_proof(number, change):
    world = OutputStoreWorld.with_second()
    proof = world.evidence(2)
    world.consumers.states[number] = replace(world.consumers.states[number], **change)
    with pytest.raises(EvidenceOutdated):
        hand_over(world.store, world.progress, 2, signed(7), proof=proof)


def test_how_long_the_other_one_is_kept_is_part_of_it():
    world = OutputStoreWorld.with_second()
    hand_over(world.store, world.progress, 2, signed(7), soak=5)
    assert world.output.handovers[-1].soak == 5


# rollback


def test_a_rollback_is_another_handover():
    world = OutputStoreWorld.handed_over()
    bind_and_deliver(world, 1, 2)
    h = world.roll_back(1)
    assert [world.output.resolve(t).number for t in (40, 41, h - 1, h)] == [1, 2, 2, 1]
    assert_one_rendition_at_every_time(world)


def test_a_rollback_to_a_rendition_that_was_not_kept_up_is_refused():
    world = OutputStoreWorld.handed_over()
    bind_and_deliver(world, 2)
    with pytest.raises(HandoverOutOfRange):
        world.roll_back(1)


def test_a_rollback_of_an_idle_writer_lets_time_pass_too():
    world = OutputStoreWorld.handed_over()
    assert roll_back(world.store, world.progress, 1, signed(8)).h == 42
    assert roll_back(world.store, world.progress, 1, signed(8)).h == 42
    assert world.output.frontier == 43


# what is judged is read in the step


@pytest.mark.parametrize("force", [False, True])
def test_a_closed_gate_is_seen(force):
    world = OutputStoreWorld.with_second()
    world.consumers.states[2] = replace(world.consumers.states[2], is_gate_open=False)
    with pytest.raises(GateNotOpen):
        world.hand_over(2, force=force)


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (1, {"position": 0}, "position of rendition 1"),
        (2, {"position": 9}, "position of rendition 2"),
        (2, {"acknowledged": (3,)}, "acknowledged ids of rendition 2"),
        (1, {"code": {"shop": "7f3a"}}, "code of rendition 1"),
    ],
)
def test_what_has_changed_since_the_verification_is_seen(number, change, said):
    world = OutputStoreWorld.with_second()
    world.consumers.states[number] = replace(world.consumers.states[number], **change)
    with pytest.raises(EvidenceOutdated) as refusal:
        world.hand_over(2)
    assert refusal.value.changed == (said,)


def test_without_evidence_only_force_hands_over():
    world = OutputStoreWorld.begun()
    number = world.declare()
    world.finish(number)
    with pytest.raises(NotVerified):
        world.hand_over(number)
    world.hand_over(number, force=True)
    assert world.output.handovers[-1].is_forced


# at once


@pytest.mark.parametrize("request_", REQUESTS)
def test_of_two_handovers_to_different_renditions_at_once_one_is_refused(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.with_second(consensus)
    world.build()
    outcome = {}

    def hand_over_to(number: int) -> None:
        try:
            outcome[number] = world.hand_over(number)
        except EvidenceOutdated as refused:
            outcome[number] = refused.changed

    consensus.step_in(request_, lambda: hand_over_to(3))
    hand_over_to(2)
    consensus.step_in_at_last()
    winner = world.output.active.number
    assert outcome == {winner: 41, 5 - winner: (f"rendition {winner} instead of 1",)}
    assert_one_rendition_at_every_time(world)


@pytest.mark.parametrize("request_", REQUESTS)
def test_of_two_handovers_to_one_rendition_at_once_there_is_one(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.with_second(consensus)
    found = []
    consensus.step_in(request_, lambda: found.append(hand_over(world.store, world.progress, 2, signed(7))))
    found.append(hand_over(world.store, world.progress, 2, signed(8)))
    consensus.step_in_at_last()
    assert found == [world.output.handovers[-1]] * 2
    assert len(world.output.handovers) == 2


@pytest.mark.parametrize("request_", REQUESTS)
def test_statement_17_where_the_frontier_advances_meanwhile_it_is_at_the_later_one(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.with_second(consensus)
    answers = {}

    def deliver_and_read() -> None:
        world.bind_nothing(50)
        output = advance_frontier(world.store, world.progress)
        answers.update({t: output.resolve(t).number for t in range(output.frontier)})

    consensus.step_in(request_, deliver_and_read)
    world.hand_over(2)
    consensus.step_in_at_last()
    # Statement 16: what a reader was told stays so.
    assert {t: world.output.resolve(t).number for t in answers} == answers
    assert_one_rendition_at_every_time(world)


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_binding_that_is_made_meanwhile_is_not_passed(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.with_second(consensus)
    consensus.step_in(request_, lambda: world.bind(45))
    world.hand_over(2)
    consensus.step_in_at_last()
    assert world.output.frontier <= 45


def test_a_gate_that_closes_and_a_frontier_that_advances_meanwhile_are_both_seen():
    consensus = SteppingConsensus()
    world = OutputStoreWorld.with_second(consensus)
    world.bind_nothing(60)

    def close_and_advance() -> None:
        world.consumers.states[2] = replace(world.consumers.states[2], is_gate_open=False)
        advance_frontier(world.store, world.progress)

    world.consumers.before_next = close_and_advance
    with pytest.raises(GateNotOpen):
        world.hand_over(2)
