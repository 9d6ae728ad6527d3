"""Tables that a replicator has written meanwhile are taken over with the checks of the first time."""

from pathlib import Path

import pytest
from tests.support.fault_points import TAKE_OVER
from tests.support.faults import Killed
from tests.support.replicator_samples import PLACE, WRITER, Theirs, declared

from tidemark.clock import SECOND
from tidemark.consensus.lease import LEASE
from tidemark.delivery.operator.action_plan import ChangedMeanwhile, NotPossible
from tidemark.delivery.state.handed_back import HAND_BACK
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.writer_state import Cause
from tidemark.faults import FaultPoint
from tidemark.journal_tables.statements import Pointer
from tidemark.kafka.consumer_groups import ReplicatorRuns
from tidemark.writers.replicator.take_back import TAKING_OVER, objection_to

pytestmark = pytest.mark.unit


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theirs:
    """Handed back at offset 2; the replicator has come to offset 7."""
    theirs = Theirs(tmp_path, monkeypatch)
    theirs.stop()
    theirs.hand_back()
    theirs.point(7)
    return theirs


# The rule


@pytest.mark.parametrize("offset", [2, 7], ids=["where we left it", "past it"])
def test_pointers_at_or_past_everything_that_is_bound_are_taken(offset):
    assert objection_to({PLACE: 3}, {PLACE: Pointer(offset, 10)}, now=11) is None


@pytest.mark.parametrize(
    ("pointers", "said"),
    [
        pytest.param({PLACE: Pointer(1, 10)}, "up to offset 2, but its pointer is at 1", id="behind"),
        pytest.param({}, "its pointer is missing", id="missing"),
        pytest.param({PLACE: Pointer(2, 11)}, "0.0 s ahead of this machine's clock", id="written now"),
        pytest.param({PLACE: Pointer(2, 11 + 5 * SECOND)}, "5.0 s ahead", id="written later"),
    ],
)
def test_i18_pointers_behind_what_is_bound_or_ahead_of_the_clock_are_refused(pointers, said):
    """Item 18: what is bound beyond their pointers has older write times than theirs."""
    objection = objection_to({PLACE: 3}, pointers, now=11)
    assert objection is not None
    assert said in objection


def test_nothing_bound_is_no_objection():
    assert objection_to({}, {}, now=1) is None


# The command


def test_i18_taking_over_opens_the_gate_and_remembers_how_far_the_replicator_came(theirs):
    theirs.take_over()
    state = theirs.state(WRITER)
    assert (state.gate, state.handed_back, state.theirs, state.position) == (None, None, {PLACE: 7}, 2)
    assert [deed.what for deed in theirs.positions.deeds("cassandra")][-1] == "take over"


def test_i18_every_later_binding_is_later_than_what_the_replicator_wrote(theirs):
    theirs.take_over()
    assert theirs.control.bindings_head().upper >= theirs.clock() > theirs.pointers[PLACE].written


def test_the_plan_says_what_counts_as_theirs_and_changes_nothing(theirs):
    before = theirs.state(WRITER), theirs.control.bindings_head()
    plan = theirs.plan_take_over()
    assert plan.lines[0] == "orders/0: offsets 3 to 7 count as written by the replicator"
    assert plan.to_dict()["pointers"] == [["orders", 0, 7]]
    assert (theirs.state(WRITER), theirs.control.bindings_head()) == before


def test_i18_a_replicator_that_still_runs_is_refused(theirs):
    theirs.members = ("them at 10.0.0.1",)
    with pytest.raises(ReplicatorRuns, match=r"them at 10\.0\.0\.1"):
        theirs.plan_take_over()
    assert theirs.state(WRITER).handed_back is not None


def test_i18_what_was_bound_beyond_their_pointers_meanwhile_is_refused_with_the_ways_out(theirs):
    theirs.publish(orders="defghi")  # up to offset 8
    with pytest.raises(NotPossible, match=r"up to offset 8, .* is at 7.*until its pointer is.*new name"):
        theirs.plan_take_over()
    theirs.point(8)
    theirs.take_over()
    assert theirs.gate(WRITER) is None


def test_partitions_that_the_writer_does_not_take_are_not_asked_for(theirs):
    theirs.publish(refunds="xyz")
    theirs.pipeline = declared(namespaces="^orders$")
    theirs.take_over()
    assert theirs.state(WRITER).theirs == {PLACE: 7}


def test_a_binding_that_is_made_while_one_looks_at_the_plan_makes_it_void(theirs):
    plan = theirs.plan_take_over()
    theirs.publish(orders="d")
    with pytest.raises(ChangedMeanwhile):
        plan.execute(theirs.deed("take over"))
    assert theirs.state(WRITER).handed_back is not None


def test_nothing_is_taken_over_while_a_run_has_the_writer(theirs):
    take(theirs.positions, theirs.state(WRITER), "run", theirs.clock)
    with pytest.raises(LeaseHeld):
        theirs.plan_take_over()


@pytest.mark.parametrize(("holder", "waited"), [("run", LEASE), (TAKING_OVER, 0)])
def test_a_process_that_died_with_the_writer_holds_up_nothing_for_long(theirs, holder, waited):
    take(theirs.positions, theirs.state(WRITER), holder, theirs.clock)
    theirs.clock.now += waited
    theirs.take_over()
    assert theirs.gate(WRITER) is None


def test_only_a_journal_is_taken_over(theirs):
    with pytest.raises(NotPossible, match="only a journal's tables"):
        theirs.plan_take_over("archive")


@pytest.mark.parametrize(
    ("start", "said"),
    [("pointers", "never ran, so its first run takes over"), ("earliest", "source.kafka.start: pointers")],
)
def test_a_writer_that_never_ran_takes_over_by_itself(theirs, start, said):
    theirs.pipeline = declared(start, name="other")
    with pytest.raises(NotPossible, match=said):
        theirs.plan_take_over("other")


def test_an_open_writer_has_nothing_to_take_over(theirs):
    theirs.take_over()
    with pytest.raises(NotPossible, match="its gate is open"):
        theirs.plan_take_over()


@pytest.mark.parametrize("cause", [Cause.MESSAGE, Cause.VERIFICATION])
def test_what_a_take_over_does_not_mend_it_does_not_open(theirs, cause):
    theirs.take_over()
    theirs.close(cause)
    with pytest.raises(NotPossible, match="does not mend"):
        theirs.plan_take_over()


@pytest.mark.parametrize("cause", [Cause.MESSAGE, Cause.VERIFICATION])
def test_a_hand_back_of_an_older_version_is_taken_over_whatever_had_closed_the_gate_before(theirs, cause):
    # given: an older version kept the deed of a hand-back, and left the gate as it was
    theirs.take_over()
    theirs.close(cause)
    state = theirs.state(WRITER)
    deed = theirs.positions.audit_row(state, theirs.deed(HAND_BACK))
    theirs.positions.commit(state, state.position, None, state.gate, None, deed)
    # when
    theirs.take_over()
    # then
    assert theirs.gate(WRITER) is None


def test_tables_that_changed_without_a_hand_back_can_be_taken_over_too(theirs):
    theirs.take_over()
    theirs.close(Cause.TARGET)
    theirs.point(9)
    theirs.take_over()
    assert (theirs.gate(WRITER), theirs.state(WRITER).theirs) == (None, {PLACE: 9})


# Dying


@pytest.mark.parametrize("point", TAKE_OVER)
def test_i18_a_take_over_that_dies_is_done_whole_or_not_at_all(theirs, kill_at, point):
    kill_at(point)
    with pytest.raises(Killed):
        theirs.take_over()
    if point is FaultPoint.TAKE_OVER_DATED:
        assert theirs.state(WRITER).handed_back is not None
        theirs.take_over()
    assert (theirs.gate(WRITER), theirs.state(WRITER).theirs) == (None, {PLACE: 7})
