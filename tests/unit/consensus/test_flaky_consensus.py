"""The faults that tests of other modules are made of: each does what its name says."""

import pytest
from tests.support.contracts.consensus_contract import ConsensusContract
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ABSENT, Change, ObjectKey, ObjectKind, Outpaced, Undecided

pytestmark = pytest.mark.unit

KEY = ObjectKey(ObjectKind.LOG, "orders")
MINE = Change({"head": "mine"})


class TestWithoutFaults(ConsensusContract):
    @pytest.fixture
    def consensus(self) -> FlakyConsensus:
        return FlakyConsensus(MemoryConsensus())


def given_commit_with(fault: Fault) -> FlakyConsensus:
    flaky = FlakyConsensus(MemoryConsensus())
    flaky.arm(fault)
    with pytest.raises(Undecided):
        flaky.commit(KEY, ABSENT, MINE)
    return flaky


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_leaves_a_commit_undecided(fault: Fault):
    flaky = FlakyConsensus(MemoryConsensus())
    flaky.arm(fault)
    with pytest.raises(Undecided) as doubt:
        flaky.commit(KEY, ABSENT, MINE)
    assert (doubt.value.key, doubt.value.expected, doubt.value.reason) == (KEY, ABSENT, fault)


def test_a_lost_request_is_not_applied():
    assert given_commit_with(Fault.REQUEST_LOST).read(KEY, ["head"]).version == ABSENT


def test_a_lost_answer_is_to_a_commit_that_was_applied():
    snapshot = given_commit_with(Fault.ANSWER_LOST).read(KEY, ["head"])
    assert (snapshot.version, dict(snapshot.rows)) == (1, {"head": "mine"})


def test_a_lost_answer_may_have_been_a_refusal():
    flaky = FlakyConsensus(MemoryConsensus())
    flaky.arm(Fault.ANSWER_LOST)
    with pytest.raises(Undecided):
        flaky.commit(KEY, 5, MINE)


def test_a_late_request_is_not_seen_before_it_lands():
    assert given_commit_with(Fault.LATE).read(KEY, ["head"]).version == ABSENT


def test_a_late_request_lands_when_told_to():
    flaky = given_commit_with(Fault.LATE)
    flaky.land()
    assert dict(flaky.read(KEY, ["head"]).rows) == {"head": "mine"}


def test_a_late_request_lands_before_the_next_commit():
    flaky = given_commit_with(Fault.LATE)
    with pytest.raises(Outpaced):
        flaky.commit(KEY, ABSENT, Change({"head": "again"}))


def test_a_late_request_that_finds_another_version_changes_nothing():
    flaky = given_commit_with(Fault.LATE)
    flaky.commit_undisturbed(KEY, ABSENT, Change({"head": "theirs"}))
    flaky.land()
    assert dict(flaky.read(KEY, ["head"]).rows) == {"head": "theirs"}


def test_a_fault_can_be_kept_for_a_later_commit():
    flaky = FlakyConsensus(MemoryConsensus())
    flaky.arm(None, Fault.REQUEST_LOST)
    assert flaky.commit(KEY, ABSENT, MINE) == 1
    with pytest.raises(Undecided):
        flaky.commit(KEY, 1, MINE)


def test_a_disarmed_fault_does_not_happen():
    flaky = FlakyConsensus(MemoryConsensus())
    flaky.arm(Fault.REQUEST_LOST)
    flaky.disarm()
    assert flaky.commit(KEY, ABSENT, MINE) == 1
