"""Every run of a pipeline that took over looks once whether a replicator is at work."""

from pathlib import Path

import pytest
from tests.support.replicator_samples import WRITER, Theirs, declared

from tidemark.app.open_pipeline import resumes_by_itself
from tidemark.delivery.state.handed_back import TablesHandedBack
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.writer_state import Cause
from tidemark.kafka.consumer_groups import ReplicatorRuns

pytestmark = pytest.mark.unit


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theirs:
    theirs = Theirs(tmp_path, monkeypatch)
    theirs.pipeline = declared("pointers")
    return theirs


def test_an_empty_group_lets_the_run_pass_after_one_request(theirs):
    theirs.watch()
    assert (theirs.asked, theirs.gate(WRITER)) == ([{"orders"}], None)


def test_i18_a_replicator_at_work_stops_the_writer_until_a_take_over(theirs):
    """Item 18: the group's members are looked at on every run, not only on the first."""
    theirs.members = ("them at 10.0.0.1",)
    with pytest.raises(ReplicatorRuns, match=r"them at 10.0.0.1.*take-over orders cassandra") as refused:
        theirs.watch()
    state = theirs.state(WRITER)
    assert (refused.value.needs_person, refused.value.writer) == (True, "cassandra")
    assert (state.gate.cause, state.position, resumes_by_itself(state.gate)) == (Cause.REPLICATOR, 2, False)
    with pytest.raises(TablesHandedBack):
        theirs.operator.open("cassandra")


def test_i18_a_pipeline_that_took_over_by_command_is_watched_too(theirs):
    theirs.stop()
    theirs.hand_back()
    theirs.take_over()
    theirs.pipeline, theirs.members = declared(), ("them at 10.0.0.1",)
    with pytest.raises(ReplicatorRuns):
        theirs.watch()
    assert theirs.state(WRITER).handed_back is not None


def test_a_pipeline_that_has_its_tables_to_itself_asks_for_nothing(theirs):
    theirs.pipeline, theirs.members = declared(), ("them at 10.0.0.1",)
    theirs.watch()
    assert theirs.asked == []


def test_tables_that_were_handed_back_are_the_replicator_s(theirs):
    theirs.stop()
    theirs.hand_back()
    theirs.members = ("them at 10.0.0.1",)
    theirs.watch()
    theirs.watch(only="cassandra")
    assert theirs.asked == []


def test_a_resume_of_a_stopped_writer_is_watched(theirs):
    theirs.close(Cause.TARGET)
    theirs.members = ("them at 10.0.0.1",)
    theirs.watch()  # a run writes nothing for it
    with pytest.raises(ReplicatorRuns):
        theirs.watch(only="cassandra")
    assert theirs.gate(WRITER).cause is Cause.REPLICATOR


def test_a_writer_that_is_not_registered_yet_is_refused_and_not_created(theirs):
    theirs.pipeline, theirs.members = declared("pointers", name="other"), ("them at 10.0.0.1",)
    with pytest.raises(ReplicatorRuns, match="try again"):
        theirs.watch()
    assert theirs.positions.load("other") is None


def test_a_writer_that_is_being_delivered_to_is_stopped_by_the_next_run(theirs):
    take(theirs.positions, theirs.state(WRITER), "another run", theirs.clock)
    theirs.members = ("them at 10.0.0.1",)
    with pytest.raises(ReplicatorRuns, match="Nothing was changed"):
        theirs.watch()
    assert theirs.gate(WRITER) is None
