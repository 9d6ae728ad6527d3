"""Tables are handed back only while nothing of ours can write to them, and the writer remembers it."""

import json
from pathlib import Path

import pytest
from tests.support import fault_points
from tests.support.faults import Killed
from tests.support.replicator_samples import WRITER, Theirs

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease import LEASE
from tidemark.consensus.objects import Change, ObjectKey, ObjectKind
from tidemark.delivery.operator.action_plan import ChangedMeanwhile, NotPossible
from tidemark.delivery.state.handed_back import HAND_BACK, TablesHandedBack, handed_back_before
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.state.writer_state import Cause, HandedBack
from tidemark.kafka.consumer_groups import ReplicatorRuns
from tidemark.writers.replicator import hand_back
from tidemark.writers.replicator.hand_back import HANDING_BACK

pytestmark = pytest.mark.unit


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theirs:
    theirs = Theirs(tmp_path, monkeypatch)
    theirs.stop()
    return theirs


def test_the_writer_is_held_and_remembers_it_while_the_offsets_are_committed(theirs):
    theirs.hand_back()
    (during,) = theirs.seen
    assert (during.lease and during.lease.holder, theirs.state(WRITER).lease) == (HANDING_BACK, None)
    assert during.handed_back is not None
    assert theirs.committed == [{"orders": {0: 3}}]


def test_the_gate_stays_closed_and_the_deed_is_kept(theirs):
    theirs.hand_back()
    gate, deeds = theirs.gate(WRITER), [deed.what for deed in theirs.positions.deeds("cassandra")]
    assert (gate.cause, gate.reason) == (Cause.HAND, "handed back by ann: to test hand back")
    assert deeds == ["stop", "hand back"]


def test_tables_are_not_handed_back_while_the_gate_is_open(tmp_path, monkeypatch):
    with pytest.raises(NotPossible, match="stop it first: tidemark gate stop orders cassandra"):
        Theirs(tmp_path, monkeypatch).plan_hand_back()


def test_only_a_journal_is_handed_back(theirs):
    with pytest.raises(NotPossible, match="only a journal's tables"):
        theirs.plan_hand_back("archive")


def test_tables_of_a_topic_that_was_made_again_are_not_handed_back(theirs, monkeypatch):
    monkeypatch.setattr(hand_back, "recreated_topics", lambda control, state: frozenset({"orders"}))
    with pytest.raises(NotPossible, match="topic orders was deleted and made again"):
        theirs.plan_hand_back()


def test_tables_are_not_handed_back_to_a_replicator_that_runs(theirs):
    theirs.members = ("them at 10.0.0.1",)
    with pytest.raises(ReplicatorRuns):
        theirs.plan_hand_back()
    assert theirs.state(WRITER).handed_back is None


def test_tables_are_not_handed_back_while_a_resume_runs(theirs):
    take(theirs.positions, theirs.state(WRITER), "resume", theirs.clock)
    with pytest.raises(LeaseHeld):
        theirs.plan_hand_back()


def test_a_resume_that_begins_while_one_looks_at_the_plan_has_the_tables(theirs):
    plan = theirs.plan_hand_back()
    take(theirs.positions, theirs.state(WRITER), "resume", theirs.clock)
    with pytest.raises(ChangedMeanwhile):
        plan.execute(theirs.deed("hand back"))
    assert (theirs.committed, theirs.state(WRITER).handed_back) == ([], None)


@pytest.mark.parametrize(("holder", "waited"), [("resume", LEASE), (HANDING_BACK, 0)])
def test_a_process_that_died_with_the_writer_holds_up_nothing_for_long(theirs, holder, waited):
    take(theirs.positions, theirs.state(WRITER), holder, theirs.clock)
    theirs.clock.now += waited
    theirs.hand_back()
    assert len(theirs.committed) == 1


# What a writer that handed back refuses


WAYS = {
    "open": lambda theirs: theirs.operator.open("cassandra"),
    "resume": lambda theirs: theirs.resume(WRITER),
    "acknowledge": lambda theirs: theirs.operator.acknowledge(WRITER, 3, None, theirs.letters),
}


@pytest.mark.parametrize("way", WAYS)
def test_i18_only_a_take_over_opens_the_gate_of_a_writer_that_handed_back(theirs, way):
    """Item 18: it was enough to open the gate."""
    theirs.hand_back()
    before = theirs.state(WRITER)
    with pytest.raises(TablesHandedBack, match="tidemark journal take-over orders cassandra") as refused:
        WAYS[way](theirs)
    after = theirs.state(WRITER)
    assert (after.gate, after.position, after.handed_back) == (before.gate, 2, before.handed_back)
    assert refused.value.needs_person


def test_i18_no_code_can_open_the_gate_of_a_writer_that_handed_back(theirs):
    theirs.hand_back()
    state = theirs.state(WRITER)
    with pytest.raises(ValueError, match="may not be open"):
        theirs.positions.commit(state, state.position, None, None)


def test_i18_a_writer_that_was_forgotten_and_comes_back_remembers_it_too(theirs):
    theirs.hand_back()
    theirs.operator.forget("cassandra", []).execute(theirs.deed("forget"))
    again = theirs.register(WRITER)
    assert (again.position, again.handed_back and again.handed_back.reason) == (-1, "to test hand back")
    with pytest.raises(TablesHandedBack):
        theirs.operator.open("cassandra")


def test_a_hand_back_is_of_a_keyspace_and_a_writer_that_comes_back_with_another_one_is_open(theirs):
    # given
    old, new = ({**WRITER.shape, "keyspace": keyspace} for keyspace in ("old", "new"))
    theirs.operator.forget("cassandra", []).execute(theirs.deed("forget"))
    theirs.positions.register("cassandra", old)
    theirs.stop()
    theirs.hand_back()
    theirs.operator.forget("cassandra", []).execute(theirs.deed("forget"))
    # when: it comes back with a keyspace of its own, which is handed back and taken over
    again = theirs.positions.register("cassandra", new)
    assert (again.gate, again.handed_back) == (None, None)
    theirs.stop()
    theirs.hand_back()
    theirs.take_over()
    theirs.operator.forget("cassandra", []).execute(theirs.deed("forget"))
    # then: of the old one nothing is forgotten
    assert theirs.positions.register("cassandra", old).handed_back is not None


def test_a_hand_back_of_which_an_older_version_kept_no_keyspace_is_remembered_with_any():
    deeds = [AuditEntry(HAND_BACK, "ann", "back to them", 5), AuditEntry("forget", "ann", "moved", 6)]
    assert handed_back_before(deeds, "new") == HandedBack(5, "ann", "back to them")


def test_i18_a_hand_back_of_an_older_version_is_known_by_its_deed(theirs):
    theirs.hand_back()
    given_row_of_an_older_version(theirs)
    assert theirs.state(WRITER).handed_back is None
    with pytest.raises(TablesHandedBack):
        theirs.operator.open("cassandra")


def test_i18_an_older_hand_back_that_is_over_does_not_matter_any_more(theirs):
    theirs.hand_back()
    given_row_of_an_older_version(theirs)
    theirs.positions.commit(theirs.state(WRITER), 2, None, None)  # as the older version let it
    theirs.clock.pass_seconds(1)
    theirs.close(Cause.TARGET)
    theirs.operator.open("cassandra").execute(theirs.deed("open"))
    assert theirs.gate(WRITER) is None


def given_row_of_an_older_version(theirs: Theirs) -> None:
    state = theirs.state(WRITER)
    row = {key: value for key, value in state.to_row().items() if key not in ("handed_back", "theirs")}
    key = ObjectKey(ObjectKind.WRITER, "orders/cassandra")
    theirs.consensus.commit(key, state.version, Change({"head": json.dumps(row, sort_keys=True)}))


# Dying


@pytest.mark.parametrize("point", fault_points.HAND_BACK)
def test_i18_a_hand_back_that_dies_is_remembered_and_finished_by_the_same_command(theirs, kill_at, point):
    kill_at(point)
    with pytest.raises(Killed):
        theirs.hand_back()
    assert theirs.state(WRITER).handed_back is not None
    with pytest.raises(TablesHandedBack):
        theirs.operator.open("cassandra")
    theirs.committed.clear()
    theirs.hand_back()
    assert theirs.committed == [{"orders": {0: 3}}]
