"""Verifying a rendition: what is refused, what is kept, what holds afterwards, and what a crash leaves."""

from dataclasses import replace

import pytest
from tests.support.compared_world import EXACT, EXPLAINED, RenditionWorld
from tests.support.fault_points import RENDITION_REPORT
from tests.support.faults import Killed
from tests.support.output_samples import signed

from tidemark.app import rendition_verification
from tidemark.app.rendition_verification import consumers_of, verify_rendition
from tidemark.delivery.renditions.output import revoke_verifications
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.writer_state import Cause, Redelivered, WriterGate
from tidemark.outputs.errors import OutputMissing, Tainted, UnknownRendition
from tidemark.outputs.model.evidence import Taint
from tidemark.outputs.model.handover import EvidenceOutdated, NotVerified
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.rendition import RenditionState
from tidemark.outputs.state import handover, lifecycle
from tidemark.outputs.state.progress import Progress
from tidemark.verification.renditions.errors import (
    ActiveChanged,
    NotBuilt,
    NothingToCompare,
    RenditionBehind,
    RenditionStopped,
)
from tidemark.verification.renditions.record import read_last

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A collection with a second rendition, both at id 1."""
    world = RenditionWorld(tmp_path, monkeypatch)
    world.publish_records("a=1 b=1")
    world.deliver(world.started())
    world.build()
    return world


def handed_over(world):
    consumers = consumers_of(world.opened, "accounts")
    progress = Progress(world.control, world.log.bindings, consumers)
    return handover.hand_over(world.outputs, progress, 2, signed(50))


def last_report(world):
    return read_last("orders", str(world.root / "log"), "accounts", 2)


# What is kept


def test_a_clean_verification_keeps_report_and_evidence(world):
    report = verify_rendition(world.opened, "accounts", 2, EXACT)
    assert last_report(world) == report
    assert world.found.rendition(2).evidence == report.evidence()
    assert handed_over(world).rendition == 2


def test_a_caller_can_hand_over_what_it_has_verified(world):
    with world.held() as held:
        report = held.verify(EXACT)
        assert handed_over(world).evidence == report.evidence()
    assert world.found.active.number == 2


def test_a_verification_that_finds_differences_keeps_its_report_and_takes_evidence_back(world):
    world.verify()
    tables = world.tables[2]
    tables._cells.clear()
    report = world.verify()
    assert (report.is_clean, last_report(world)) == (False, report)
    assert (world.state_of(2), world.found.rendition(2).evidence) == (RenditionState.BUILDING, None)
    with pytest.raises(NotVerified):
        handed_over(world)


def test_both_leases_are_held_and_given_back(world):
    world.publish_records("a=2")
    with world.held() as held:
        assert set(held.holds) == {1, 2}
        for number in (1, 2):
            with pytest.raises(LeaseHeld):
                world.deliver(world.writer_of(number))
    for number in (1, 2):
        world.deliver(world.writer_of(number))
        assert world.positions.load(world.writer_of(number).name).position == 2


def test_a_rendition_that_another_process_delivers_to_is_refused(world):
    take(world.positions, world.positions.load("accounts.r2"), "another run", world.clock)
    with pytest.raises(LeaseHeld, match="another run"), world.held():
        pass
    state = world.positions.load("accounts")
    assert state is not None
    assert state.lease is None  # taken first, and given back


# What revokes it


def given_message(world):
    world.publish_records("c=1")
    world.deliver(world.started())


def given_progress_of_both(world):
    given_message(world)
    world.deliver(world.writer_of(2))


def given_acknowledged(world):
    positions = world.positions
    positions.acknowledge(positions.load("accounts.r2"), [0], "ann", None)


def given_redelivered(world):
    """A message that was acknowledged before the verification is written after all."""
    positions = world.positions
    done = Redelivered(id=0, by="ann", reason="mended", at=1, in_place=False)
    positions.end_redelivery(positions.load("accounts.r2"), done, world.deed("redeliver"), None)


def given_code(world):
    real = rendition_verification.WriterConsumers.state

    def other(self, number):
        return replace(real(self, number), code={"rules": "other"})

    world.patch.setattr(rendition_verification.WriterConsumers, "state", other)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (given_acknowledged, "acknowledged ids of rendition 2"),
        (given_code, "code of rendition 1"),
    ],
)
def test_any_change_after_the_verification_revokes_the_evidence(world, change, said):
    world.verify()
    change(world)
    with pytest.raises(EvidenceOutdated, match=said):
        handed_over(world)
    assert world.found.active.number == 1
    revoke_verifications(world.opened.positions, "accounts")
    assert (world.state_of(2), world.found.rendition(2).evidence) == (RenditionState.BUILDING, None)


@pytest.mark.parametrize("change", [given_message, given_progress_of_both])
def test_a_delivery_after_the_verification_takes_the_evidence_back_by_itself(world, change):
    world.verify()
    change(world)
    assert (world.state_of(2), world.found.rendition(2).evidence) == (RenditionState.BUILDING, None)
    with pytest.raises(NotVerified, match="rendition 2 is building"):
        handed_over(world)
    assert world.found.active.number == 1


def test_a_redelivery_after_the_verification_revokes_the_evidence(world):
    for name in ("accounts", "accounts.r2"):
        world.positions.acknowledge(world.positions.load(name), [0], "ann", None)
    assert world.verify().candidate.acknowledged == (0,)
    given_redelivered(world)
    with pytest.raises(EvidenceOutdated, match="acknowledged ids of rendition 2"):
        handed_over(world)


def test_evidence_that_still_holds_is_not_revoked(world):
    world.verify()
    world.deliver(world.started())  # nothing new
    revoke_verifications(world.opened.positions, "accounts")
    assert world.state_of(2) == RenditionState.VERIFIED


# What is refused


def test_a_rendition_that_is_behind_is_refused_with_what_is_missing(world):
    given_message(world)
    with pytest.raises(RenditionBehind) as refused, world.held() as held:
        held.verify(EXACT)
    assert (refused.value.ids, refused.value.position) == (1, 1)
    assert "1 ids behind" in str(refused.value)
    assert "tidemark renditions build orders accounts 2" in str(refused.value)
    assert last_report(world) is None


def test_a_rendition_that_is_stopped_is_refused(world):
    state = world.positions.load("accounts.r2")
    gate = WriterGate(Cause.MESSAGE, 1, 1, 1, "a bad message.", world.clock())
    world.positions.commit(state, state.position, None, gate)
    with pytest.raises(RenditionStopped, match=r"a bad message\. Nothing .* resume orders accounts\.r2"):
        world.verify()


def test_an_active_rendition_that_is_stopped_is_compared_up_to_where_it_is(world):
    """The next rendition may be what mends it."""
    world.publish_records("c=x")
    world.deliver(world.started())
    assert world.gate(world.started()) is not None
    assert world.verify().is_clean


def test_a_tainted_rendition_is_refused(world):
    lifecycle.record_taint(world.outputs, 2, Taint(1_000, 0, "a", "b", {}, {}))
    with pytest.raises(Tainted):
        world.verify()


def test_a_tainted_active_rendition_can_be_replaced(world):
    lifecycle.record_taint(world.outputs, 1, Taint(1_000, 0, "a", "b", {}, {}))
    assert world.verify().is_clean


@pytest.mark.parametrize(
    ("number", "error"), [(1, NothingToCompare), (3, UnknownRendition), (0, UnknownRendition)]
)
def test_a_rendition_that_is_none_to_verify_is_refused(world, number, error):
    with pytest.raises(error):
        world.verify(number=number)


def test_an_abandoned_rendition_is_refused(world):
    lifecycle.abandon(world.outputs, 2, signed(9))
    with pytest.raises(NothingToCompare, match="is abandoned"):
        world.verify()


def test_a_rendition_that_nothing_was_delivered_to_is_refused(world):
    proposal = RenditionProposal({"writer": {"shards": 2}}, "collections.other", 0, signed(3))
    lifecycle.declare(world.outputs, lambda output: proposal)
    with pytest.raises(NotBuilt, match="renditions build orders accounts 3"):
        world.verify(number=3)


def test_a_handover_to_a_third_rendition_meanwhile_is_noticed(world):
    world.build(shards=2)
    with world.held(2) as held:
        progress = Progress(world.control, world.log.bindings, consumers_of(world.opened, "accounts"))
        handover.hand_over(world.outputs, progress, 3, signed(50), force=True)
        with pytest.raises(ActiveChanged, match="rendition 3 became the active one"):
            held.verify(EXACT)
    assert last_report(world) is None


def test_progress_is_shown(world):
    shown = []
    verify_rendition(world.opened, "accounts", 2, EXACT, show=shown.append)
    assert shown[-1] == "3 of 3 ranges at 1000 compared"


def test_a_writer_that_never_ran_is_refused(tmp_path, monkeypatch):
    world = RenditionWorld(tmp_path, monkeypatch)
    with pytest.raises(OutputMissing):
        world.verify()


# Crashes


def crash(world, monkeypatch, point, mode):
    """A verification in a process that dies at a fault point."""

    def killed(reached):
        if reached is point:
            world.die()
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(rendition_verification, "reach", killed)
        with pytest.raises(Killed):
            world.verify(mode)
    world.live_again()


@pytest.mark.parametrize("point", RENDITION_REPORT)
def test_a_crash_after_a_report_of_differences_leaves_no_earlier_evidence(world, monkeypatch, point):
    world.verify()
    world.tables[2]._cells.clear()
    crash(world, monkeypatch, point, EXACT)
    assert (world.state_of(2), last_report(world).is_clean) == (RenditionState.BUILDING, False)


@pytest.mark.parametrize("mode", [EXACT, EXPLAINED])
@pytest.mark.parametrize("point", RENDITION_REPORT)
def test_a_crash_after_the_report_leaves_no_evidence_and_the_next_run_records_it(
    world, monkeypatch, point, mode
):
    crash(world, monkeypatch, point, mode)
    assert (world.state_of(2), last_report(world).is_clean) == (RenditionState.BUILDING, True)
    world.clock.now += 10**9  # the leases of the process that died expire
    assert world.verify(mode).is_clean
    assert world.state_of(2) == RenditionState.VERIFIED
