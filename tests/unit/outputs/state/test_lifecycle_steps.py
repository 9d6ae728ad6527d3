"""The other steps of a rendition's life through the control plane: declared, verified, revoked, tainted."""

from dataclasses import replace

import pytest
from tests.support.consensus import SteppingConsensus
from tests.support.output_samples import TAINT, signed
from tests.support.output_store_world import OutputStoreWorld, proposal_for

from tidemark.outputs.errors import NotCompared, PlaceTaken, SettingsUsedBefore, TransitionRefused
from tidemark.outputs.model.rendition import Rendition
from tidemark.outputs.state.lifecycle import (
    abandon,
    declare,
    record_taint,
    record_verification,
    revoke_outdated,
)

pytestmark = pytest.mark.unit

REQUESTS = range(1, 8)


def given_declared(world: OutputStoreWorld, at: int, shards: int, *, is_automatic: bool = True) -> Rendition:
    return declare(
        world.store, lambda output: proposal_for(output, signed(at), shards=shards), is_automatic=is_automatic
    )


# declare


def test_a_declared_rendition_gets_the_next_number_and_a_place_by_it():
    made = given_declared(OutputStoreWorld.begun(), 5, 16)
    assert (made.number, made.place, made.state) == (2, "accounts_r2", "building")


@pytest.mark.parametrize("request_", REQUESTS)
def test_statement_7_two_operators_who_declare_at_once_get_two_numbers_and_two_places(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    found = []
    consensus.step_in(request_, lambda: found.append(given_declared(world, 5, 16, is_automatic=False).number))
    found.append(given_declared(world, 6, 16, is_automatic=False).number)
    consensus.step_in_at_last()
    assert sorted(found) == [2, 3]
    assert len({one.place for one in world.output.renditions}) == 3


@pytest.mark.parametrize("request_", REQUESTS)
def test_two_runs_that_rebuild_by_themselves_at_once_build_one_rendition(request_):
    consensus = SteppingConsensus()
    world = OutputStoreWorld.begun(consensus)
    found = []
    consensus.step_in(request_, lambda: found.append(given_declared(world, 5, 16)))
    found.append(given_declared(world, 6, 16))
    consensus.step_in_at_last()
    assert found == [world.output.rendition(2)] * 2


def test_no_run_declares_again_by_itself_what_an_operator_gave_up():
    world = OutputStoreWorld.begun()
    abandon(world.store, given_declared(world, 5, 16).number, signed(6))
    with pytest.raises(SettingsUsedBefore):
        given_declared(world, 7, 16)
    assert given_declared(world, 7, 16, is_automatic=False).number == 3


def test_two_versions_of_a_file_do_not_rebuild_against_each_other():
    world = OutputStoreWorld.begun()
    given_declared(world, 5, 16)
    given_declared(world, 6, 32)
    with pytest.raises(SettingsUsedBefore) as refusal:
        given_declared(world, 7, 16)
    assert refusal.value.number == 2


def test_a_place_that_is_taken_is_refused():
    world = OutputStoreWorld.begun()
    with pytest.raises(PlaceTaken):
        declare(world.store, lambda output: replace(proposal_for(output, signed(5)), place="accounts"))


# verify, revoke


def test_a_verification_that_is_recorded_again_after_its_handover_changes_nothing():
    world = OutputStoreWorld.begun()
    number = world.declare()
    world.finish(number)
    found = world.evidence(number)
    record_verification(world.store, number, found)
    world.hand_over(number)
    before = world.output
    assert record_verification(world.store, number, found) == before
    with pytest.raises(TransitionRefused):
        record_verification(world.store, number, replace(found, t=41))


def test_a_verification_against_a_rendition_that_is_no_longer_active_is_refused():
    world = OutputStoreWorld.with_second()
    third = world.declare()
    world.finish(third)
    found = world.evidence(third)
    world.hand_over(2)
    with pytest.raises(NotCompared):
        record_verification(world.store, third, found)


def test_evidence_that_no_longer_holds_is_revoked_and_other_evidence_stays():
    world = OutputStoreWorld.with_second()
    third = world.build()
    world.consumers.states[2] = replace(world.consumers.states[2], acknowledged=(1,))
    revoke_outdated(world.store, world.consumers)
    assert world.states == {1: "active", 2: "building", third: "verified"}
    assert world.output.rendition(2).evidence is None


def test_what_is_verified_meanwhile_is_not_revoked_by_what_was_read_before():
    consensus = SteppingConsensus()
    world = OutputStoreWorld.with_second(consensus)
    world.bind(50)
    for number in (1, 2):
        world.finish(number)
    consensus.step_in(2, lambda: world.verify(2))
    revoke_outdated(world.store, world.consumers)
    assert world.states == {1: "active", 2: "verified"}


# taint, abandon


def test_the_first_difference_is_kept():
    world = OutputStoreWorld.begun()
    record_taint(world.store, 1, TAINT)
    record_taint(world.store, 1, replace(TAINT, t=70))
    assert world.output.rendition(1).taint == TAINT


def test_a_rendition_that_is_given_up_keeps_who_did_it_and_why():
    world = OutputStoreWorld.begun()
    number = world.declare()
    abandon(world.store, number, signed(5))
    abandon(world.store, number, signed(6))
    assert world.output.rendition(number).abandoned == signed(5)
