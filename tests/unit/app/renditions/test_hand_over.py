"""Handovers and rollbacks with everything around them: comparison under leases, gates, races, crashes."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from tests.support.faults import Killed, at_point, kill_at
from tests.support.renditions_installed import ANN, ARCHIVE, FILE, RenditionInstallation

from tidemark.app.rendition_verification import renditions_held
from tidemark.app.renditions import hand_over
from tidemark.app.renditions.hand_over import (
    NEXT_OFFSETS,
    HandingOver,
    ReadersLeft,
    RollingBack,
    next_offsets,
)
from tidemark.app.renditions.opened import NothingUnfinished, newest_unfinished
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.faults import FaultPoint
from tidemark.outputs.errors import DifferencesUnexplained, TransitionRefused, UnknownRendition
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.outputs.model.handover import AlreadyActive, GateNotOpen, HandoverOutOfRange, NothingReadable
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.state import lifecycle
from tidemark.verification.renditions.errors import RenditionBehind

pytestmark = pytest.mark.unit

BOB = Signature("bob", "it is slower", 2)
FEWER = "transforms: [{skip: {field: sum, operator: '>', match: 1}}]"


@pytest.fixture
def built(bank: RenditionInstallation) -> RenditionInstallation:
    """Rendition 2, with the same messages in other files, was built."""
    bank.declare(format="jsonl")
    bank.build()
    return bank


def lag_behind(bank: RenditionInstallation, consumer: str) -> None:
    """One rendition gets more, at once, than a run delivers."""
    bank.publish({"sum": 4}, {"sum": 5})
    bank.deliver_to(consumer)
    bank.declare_text(FILE + f"  - {ARCHIVE % ('jsonl', '')}\nlimits: {{max_records_per_run: 1}}\n")


def handovers(bank: RenditionInstallation) -> list[tuple[int, str]]:
    return [(one.rendition, one.signed.who) for one in bank.output.handovers]


def test_a_rendition_is_compared_and_handed_over_in_one_step(built):
    plan = HandingOver(built.renditions(), 2).plan()
    assert (plan.refused, plan.details["h"], plan.details["active"]) == (None, built.output.frontier, 1)
    assert any("directly before" in line for line in plan.lines)
    h = built.hand_over(2)
    assert built.states == {1: "superseded", 2: "active"}
    assert built.output.handovers[-1].h == h
    assert built.output.handovers[-1].evidence.mode is VerificationMode.EXACT


def test_evidence_that_still_holds_is_not_made_again(built):
    with renditions_held(built.opened, "archive", 2) as held:
        held.verify(VerificationMode.EXACT)
    one = HandingOver(built.renditions(), 2)
    assert "verified (exact), and nothing has changed since" in one.plan().lines
    evidence = built.output.rendition(2).evidence
    assert one.carry_out(ANN).evidence == evidence


def test_what_was_delivered_since_a_verification_is_compared_before_the_handover(built):
    with renditions_held(built.opened, "archive", 2) as held:
        held.verify(VerificationMode.EXACT)
    built.publish({"sum": 4})
    built.deliver()
    assert built.states[2] == "building"  # its evidence is outdated
    assert built.hand_over(2) > 0
    assert built.output.handovers[-1].evidence.candidate.position == 3


def test_a_difference_that_appeared_since_refuses_the_handover(bank):
    bank.declare(further=FEWER)
    bank.build()
    with pytest.raises(DifferencesUnexplained, match="differs from the active one in 1 rows"):
        bank.hand_over(2)
    assert handovers(bank) == [(1, "registration of archive")]


def test_force_hands_over_without_evidence(bank):
    bank.declare(further=FEWER)
    bank.build()
    one = HandingOver(bank.renditions(), 2, force=True)
    assert "nothing is compared: --force hands over without evidence" in one.plan().lines
    done = one.carry_out(ANN)
    assert (done.is_forced, done.evidence) == (True, None)


def test_differences_that_rules_explain_do_not_refuse_it(bank):
    rule = "expect: [{rows: missing, where: 'value.sum == 1', reason: 'a test account'}]"
    bank.declare(further=f"{FEWER}, {rule}")
    bank.build()
    assert HandingOver(bank.renditions(), 2).plan().refused is None
    assert bank.hand_over(2) > 0
    assert bank.output.handovers[-1].evidence.mode is VerificationMode.EXPLAINED


def test_a_rendition_that_lacks_more_than_one_run_delivers_is_refused(built):
    lag_behind(built, "archive")
    with pytest.raises(RenditionBehind, match="2 ids behind"):
        built.hand_over(2)


def test_a_closed_gate_refuses_with_the_reason(built):
    built.stop("archive.r2")
    for force in (False, True):
        one = HandingOver(built.renditions(), 2, force)
        assert isinstance(one.plan().refused, GateNotOpen)
        with pytest.raises(GateNotOpen, match="gate of rendition 2 is closed"):
            one.carry_out(ANN)
    assert built.states == {1: "active", 2: "building"}


def test_an_unknown_rendition_and_none_at_all_are_refused(bank):
    with pytest.raises(UnknownRendition, match="there is no rendition 7"):
        HandingOver(bank.renditions(), 7).plan()
    with pytest.raises(NothingUnfinished, match="renditions build bank archive"):
        newest_unfinished(bank.renditions())


def test_the_active_rendition_needs_no_handover(bank):
    plan = HandingOver(bank.renditions(), 1).plan()
    assert (plan.changes, plan.refused) == (False, None)


def test_a_rendition_that_readers_have_left_is_rolled_back_to_instead(built):
    built.hand_over(2)
    refused = HandingOver(built.renditions(), 1).plan().refused
    assert isinstance(refused, ReadersLeft)
    assert str(refused).endswith("tidemark renditions rollback bank archive 1")


def test_before_any_time_is_readable_a_handover_is_refused_as_planned(built):
    built.renditions().store.change(lambda found: replace(found, frontier=0))
    for force in (False, True):
        one = HandingOver(built.renditions(), 2, force)
        assert isinstance(one.plan().refused, NothingReadable)
        with pytest.raises(NothingReadable, match=r"bank\.replicate"):
            one.carry_out(ANN)
    assert built.states == {1: "active", 2: "building"}


def test_the_soak_begins_with_the_handover_and_not_with_the_command(built):
    began = built.renditions().clock()
    assert HandingOver(built.renditions(), 2, force=True).carry_out(ANN).signed.at >= began


def test_a_rollback_that_lacks_something_is_refused_with_the_next_step(built):
    built.hand_over(2)
    lag_behind(built, "archive.r2")
    one = RollingBack(built.renditions())
    assert one.is_behind
    with pytest.raises(HandoverOutOfRange, match="tidemark renditions build bank archive 1"):
        one.carry_out(BOB)


# Two processes, crashes


def test_of_two_handovers_at_once_one_waits_for_the_leases_of_the_other(built):
    one = HandingOver(built.renditions(), 2)
    with renditions_held(built.opened, "archive", 2, holder="x"), pytest.raises(LeaseHeld, match="x has"):
        one.carry_out(ANN)
    assert built.hand_over(2) > 0


def test_a_handover_that_another_process_has_made_is_found(built, monkeypatch):
    one = HandingOver(built.renditions(), 2, force=True)
    at_point(monkeypatch, FaultPoint.HANDOVER_UPPER_ADVANCED, lambda: None)
    done = HandingOver(built.renditions(), 2, force=True).carry_out(BOB)
    assert one.carry_out(ANN) == done
    assert handovers(built) == [(1, "registration of archive"), (2, "bob")]


HANDOVER = [FaultPoint.HANDOVER_UPPER_ADVANCED, FaultPoint.RENDITION_VERIFIED, FaultPoint.HANDOVER_COMMITTED]


@pytest.mark.parametrize("point", HANDOVER)
def test_a_handover_that_was_killed_is_carried_out_once(built, monkeypatch, point):
    reached = kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        built.hand_over(2)
    assert reached
    built.leases_expire()
    built.hand_over(2)
    assert [number for number, _ in handovers(built)] == [1, 2]
    assert built.states == {1: "superseded", 2: "active"}


def test_a_retried_handover_does_not_undo_a_rollback(built):
    done = HandingOver(built.renditions(), 2).carry_out(ANN)
    RollingBack(built.renditions()).carry_out(BOB)
    assert HandingOver(built.renditions(), 2).carry_out(ANN) == done
    assert built.states == {1: "active", 2: "superseded"}


# Rollback


def test_a_rollback_returns_to_the_rendition_before(built):
    built.hand_over(2)
    plan = RollingBack(built.renditions()).plan()
    assert (plan.number, plan.refused) == (1, None)
    RollingBack(built.renditions()).carry_out(BOB)
    assert built.states == {1: "active", 2: "superseded"}
    assert [number for number, _ in handovers(built)] == [1, 2, 1]


def test_a_rollback_without_an_earlier_rendition_is_refused(bank):
    with pytest.raises(AlreadyActive, match="rendition 1 is active already"):
        RollingBack(bank.renditions()).plan()


def test_a_rollback_to_a_rendition_that_readers_never_used_is_refused(built):
    assert isinstance(RollingBack(built.renditions(), 2).plan().refused, TransitionRefused)
    with pytest.raises(TransitionRefused, match="rendition 2 is building"):
        RollingBack(built.renditions(), 2).carry_out(BOB)


def test_a_rollback_to_a_stopped_rendition_is_refused(built):
    built.hand_over(2)
    built.stop("archive")
    assert isinstance(RollingBack(built.renditions()).plan().refused, GateNotOpen)


def test_the_offsets_of_the_new_topic_are_read_first_so_that_a_switch_misses_nothing(bank, monkeypatch):
    bank.declare("{name: copy, kind: kafka, topic: copy}")
    bank.renditions("copy").store.create(
        RenditionProposal({"writer": {"kind": "kafka", "topic": "copy"}}, "copy", 0, ANN)
    )
    proposal = RenditionProposal({"writer": {"kind": "kafka", "topic": "copy"}}, "copy.r2", 0, BOB)
    lifecycle.declare(bank.renditions("copy").store, lambda _: proposal)
    asked: list[str] = []

    class Topics:
        def offsets(self, topics: list[str]) -> dict[tuple[str, int], tuple[int, int]]:
            asked.extend(topics)
            return {(topics[0], 0): (0, len(asked))}

    monkeypatch.setattr(hand_over, "looking_at_topics", lambda *_: nullcontext(Topics()))
    found = next_offsets(bank.renditions("copy"), 2)
    assert (asked, found) == (["copy.r2", "copy"], {NEXT_OFFSETS: {"2": {"0": 1}, "1": {"0": 2}}})
