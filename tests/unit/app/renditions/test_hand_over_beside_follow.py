"""Handovers while messages arrive and readers advance the frontier: they come to their end, at one time for
all."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.consensus import BusyConsensus
from tests.support.faults import Killed, at_point, kill_at
from tests.support.renditions_installed import ANN, RenditionInstallation

from tidemark.app.renditions import hand_over
from tidemark.app.renditions.hand_over import HandingOver, RollingBack
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.faults import FaultPoint
from tidemark.outputs.model.handover import EvidenceOutdated, HandoverOutOfRange
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.state.lifecycle import revoke_outdated

pytestmark = pytest.mark.unit

BOB = Signature("bob", "it is slower", 2)


@pytest.fixture
def built(bank: RenditionInstallation) -> RenditionInstallation:
    """Rendition 2, with the same messages in other files, was built."""
    bank.declare(format="jsonl")
    bank.build()
    return bank


@pytest.fixture
def pressed(built: RenditionInstallation) -> RenditionInstallation:
    """A binding is published and not delivered yet, and readers wait for its time."""
    binding = built.publish({"sum": 4})
    assert built.read_newest() == binding.t == 3_000
    return built


def return_of_readers(bank: RenditionInstallation) -> None:
    RollingBack(bank.renditions()).carry_out(BOB)


def forced_handover(bank: RenditionInstallation, signed: Signature = ANN) -> None:
    HandingOver(bank.renditions(), 2, force=True).carry_out(signed)


def compared_handover(bank: RenditionInstallation, signed: Signature = ANN) -> None:
    HandingOver(bank.renditions(), 2).carry_out(signed)


def test_the_next_binding_goes_to_the_entering_rendition_alone(pressed):
    assert pressed.hand_over(2) == 3_000
    assert (pressed.position("archive"), pressed.position("archive.r2")) == (2, 3)
    assert pressed.output.frontier == 3_001
    pressed.deliver()
    assert pressed.position("archive") == 3


def test_it_is_compared_while_both_have_the_same(pressed):
    pressed.hand_over(2)
    evidence = pressed.output.handovers[-1].evidence
    assert (evidence.candidate.position, evidence.active.position, evidence.is_clean) == (2, 2, True)


def test_what_was_delivered_to_the_active_one_alone_before_the_leases_were_taken_is_made_up_for(built):
    built.publish({"sum": 4})
    built.deliver_to("archive")
    built.hand_over(2)
    assert built.output.handovers[-1].evidence.candidate.position == 3
    assert built.position("archive.r2") == 3


def test_a_forced_handover_and_a_return_come_to_their_end_too(pressed):
    forced_handover(pressed)
    pressed.publish({"sum": 5})
    pressed.deliver()
    binding = pressed.publish({"sum": 6})
    assert pressed.read_newest() == binding.t
    return_of_readers(pressed)
    assert [(one.h, one.rendition) for one in pressed.output.handovers] == [(0, 1), (3_000, 2), (5_000, 1)]


def test_the_offsets_of_a_switch_are_those_at_which_both_have_the_same(pressed, monkeypatch):
    def positions(of: Any, number: int) -> dict[str, int]:
        return {str(one): of.consumers.state(one).position for one in (1, number)}

    monkeypatch.setattr(hand_over, "next_offsets", positions)
    pressed.hand_over(2)
    assert pressed.output.handovers[-1].details == {"1": 2, "2": 2}


def waiting(*steps: Callable[[], object]) -> Callable[[float], Iterator[bool]]:
    """``attempts``: what happens while a handover waits."""

    def attempts(patience: float) -> Iterator[bool]:
        for step in steps:
            yield False
            step()
        yield True

    return attempts


def test_a_binding_that_is_not_published_yet_is_waited_for(built, monkeypatch):
    binding = built.bind(1)
    assert built.read_newest() == binding.t
    publish = lambda: built.publish_bound(binding, {"sum": 4})  # noqa: E731
    monkeypatch.setattr(hand_over, "attempts", waiting(lambda: None, publish))
    assert built.hand_over(2) == binding.t


def test_one_that_is_never_published_refuses_the_handover_with_the_next_step(built):
    built.bind(1)
    built.read_newest()
    with pytest.raises(HandoverOutOfRange, match="tidemark renditions build bank archive 2"):
        HandingOver(built.renditions(), 2, patience=0.0).carry_out(ANN)
    assert built.states == {1: "active", 2: "verified"}


def test_evidence_that_a_process_withdraws_because_it_finds_the_rendition_ahead_still_counts(
    pressed, monkeypatch
):
    of = pressed.renditions()
    reached = at_point(
        monkeypatch, FaultPoint.DELIVER_COMMITTED, lambda: revoke_outdated(of.store, of.consumers)
    )
    pressed.hand_over(2)
    assert reached
    assert pressed.states == {1: "superseded", 2: "active"}


def test_an_acknowledgement_meanwhile_refuses_it(pressed, monkeypatch):
    at_point(monkeypatch, FaultPoint.DELIVER_COMMITTED, lambda: pressed.acknowledge("archive.r2", 1))
    with pytest.raises(EvidenceOutdated, match="acknowledged ids of rendition 2"):
        pressed.hand_over(2)
    assert pressed.states[1] == "active"


@pytest.mark.parametrize("begin", [compared_handover, forced_handover])
def test_readers_that_advance_the_frontier_at_every_moment_do_not_keep_it_from_its_end(built, begin):
    binding = built.publish({"sum": 4})
    busy = built.consensus = BusyConsensus.copy_of(built.consensus)
    busy.meanwhile = built.read_newest
    begin(built)
    assert built.output.handovers[-1].h == binding.t


def test_a_follow_that_binds_more_meanwhile_does_not_either(pressed, monkeypatch):
    def follow() -> None:
        pressed.publish({"sum": 5})
        pressed.publish({"sum": 6})
        pressed.read_newest()

    at_point(monkeypatch, FaultPoint.DELIVER_COMMITTED, follow)
    assert pressed.hand_over(2) == 3_000
    assert pressed.output.frontier == 4_000
    pressed.deliver()
    assert pressed.position("archive") == pressed.position("archive.r2") == 5


# Crashes: what was delivered to the entering rendition alone


KILLED = [FaultPoint.DELIVER_PARTS_WRITTEN, FaultPoint.DELIVER_COMMITTED, FaultPoint.HANDOVER_COMMITTED]


@pytest.mark.parametrize("point", KILLED)
@pytest.mark.parametrize("begin", [compared_handover, forced_handover])
@pytest.mark.parametrize("again", [ANN, BOB], ids=["the same run again", "another run"])
def test_a_handover_that_was_killed_ahead_is_carried_out_once(pressed, monkeypatch, point, begin, again):
    reached = kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        begin(pressed)
    assert reached
    pressed.leases_expire()
    begin(pressed, again)
    assert [one.rendition for one in pressed.output.handovers] == [1, 2]
    assert pressed.position("archive.r2") == 3


@pytest.mark.parametrize("point", KILLED)
@pytest.mark.parametrize("begin", [compared_handover, forced_handover])
def test_two_handovers_at_once_end_like_one(pressed, monkeypatch, point, begin):
    refused: list[LeaseHeld] = []

    def other() -> None:
        try:
            forced_handover(pressed, BOB)
        except LeaseHeld as held:  # before the entering rendition has the next binding
            refused.append(held)

    reached = at_point(monkeypatch, point, other)
    begin(pressed)
    assert reached
    assert [one.rendition for one in pressed.output.handovers] == [1, 2]
    assert pressed.states == {1: "superseded", 2: "active"}
    assert bool(refused) is (point is FaultPoint.DELIVER_PARTS_WRITTEN)


def test_after_a_crash_both_have_the_same_again_before_they_are_compared(pressed, monkeypatch):
    kill_at(monkeypatch, FaultPoint.DELIVER_COMMITTED)
    with pytest.raises(Killed):
        pressed.hand_over(2)
    pressed.leases_expire()
    assert (pressed.position("archive"), pressed.position("archive.r2")) == (2, 3)
    pressed.hand_over(2)
    evidence = pressed.output.handovers[-1].evidence
    assert (evidence.active.position, evidence.candidate.position) == (3, 3)
