"""The table of a synchronisation: what is corrected, and what is newer than the dump."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.operations.operation import EventName
from tidemark.oplog.sync.decisions import CurrentObject, DumpedObject, Outcome, correction, decide

pytestmark = pytest.mark.unit

START = 12_000


def live(at: int, *parents: str) -> CurrentObject:
    return CurrentObject(False, at * 1_000, parents)


def deleted(at: int, *parents: str) -> CurrentObject:
    return CurrentObject(True, at * 1_000, parents)


def dumped(at: int, *parents: str) -> DumpedObject:
    return DumpedObject(at * 1_000, parents)


@pytest.mark.parametrize(
    ("current", "line", "outcome"),
    [
        pytest.param(None, dumped(10), Outcome.INSERT, id="S1"),
        pytest.param(live(10), dumped(10), Outcome.SAME, id="S2"),
        pytest.param(live(9), dumped(10), Outcome.UPDATE, id="S3"),
        pytest.param(live(11), dumped(10), Outcome.NEWER, id="S4"),
        pytest.param(deleted(9), dumped(10), Outcome.INSERT_DELETED, id="S5"),
        pytest.param(deleted(11), dumped(10), Outcome.INSERT_DELETED, id="S6"),
        pytest.param(deleted(13), dumped(10), Outcome.DELETED_SINCE, id="S7"),
        pytest.param(live(9), None, Outcome.DELETE, id="S8"),
        pytest.param(live(13), None, Outcome.INSERTED_SINCE, id="S9"),
        pytest.param(deleted(9), None, Outcome.GONE, id="S10"),
        pytest.param(deleted(12), dumped(10), Outcome.DELETED_SINCE, id="deleted at the start"),
        pytest.param(live(12), None, Outcome.INSERTED_SINCE, id="changed at the start"),
        pytest.param(live(10, "a/1"), dumped(10, "a/2"), Outcome.UPDATE_PARENTS, id="other parents"),
        pytest.param(live(11, "a/1"), dumped(10, "a/2"), Outcome.UPDATE_PARENTS, id="other parents, later"),
        pytest.param(live(12, "a/1"), dumped(10, "a/2"), Outcome.NEWER, id="other parents since the start"),
        pytest.param(live(10, "a/1", "b/2"), dumped(10, "b/2", "a/1"), Outcome.SAME, id="another order"),
        pytest.param(live(10, "a/1"), dumped(10), Outcome.UPDATE_PARENTS, id="without parents"),
        pytest.param(None, None, Outcome.GONE, id="nowhere"),
    ],
)
def test_one_object(current, line, outcome):
    assert decide(line, current, START) is outcome


def test_S5_a_deleted_object_is_inserted_with_what_the_dump_says():
    sent = correction("video", "x", Outcome.INSERT_DELETED, dumped(10, "user/u"), deleted(9), START)
    assert (sent.event, sent.timestamp, sent.parents) == (EventName.INSERT, 10_000, ("user/u",))


def test_S8_a_delete_names_the_parents_that_the_object_had():
    sent = correction("video", "x", Outcome.DELETE, None, live(9, "user/u"), START)
    assert (sent.event, sent.parents) == (EventName.DELETE, ("user/u",))


def test_an_older_dump_does_not_undo_a_delete():
    sent = correction("video", "x", Outcome.DELETE, None, live(9), START)
    state = CurrentObject(True, sent.timestamp, sent.parents)
    assert decide(dumped(9), state, 11_000) is Outcome.DELETED_SINCE


def test_the_same_dump_completed_undoes_a_delete():
    sent = correction("video", "x", Outcome.DELETE, None, live(9), START)
    state = CurrentObject(True, sent.timestamp, sent.parents)
    assert decide(dumped(9), state, START) is Outcome.INSERT_DELETED


def test_nothing_is_sent_about_what_is_newer():
    assert correction("video", "x", Outcome.NEWER, dumped(10), live(11), START) is None


TIMES = st.integers(0, 20)
PARENTS = st.lists(st.sampled_from(["a/1", "b/2"]), max_size=2).map(tuple)
CURRENT = st.none() | st.builds(CurrentObject, st.booleans(), TIMES, PARENTS)
DUMPED = st.none() | st.builds(DumpedObject, TIMES, PARENTS)


@given(DUMPED, CURRENT, TIMES)
def test_R35_what_was_corrected_needs_no_correction(line, current, start):
    sent = correction("video", "x", decide(line, current, start), line, current, start)
    if sent is not None:
        state = CurrentObject(sent.event is EventName.DELETE, sent.timestamp, sent.parents)
        assert decide(line, state, start).event is None


@given(DUMPED, CURRENT, TIMES)
def test_R33_what_changed_at_the_start_or_later_is_only_updated_to_something_later(line, current, start):
    outcome = decide(line, current, start)
    if current is not None and current.timestamp >= start and outcome.event is not None:
        assert outcome is Outcome.UPDATE
        assert line.timestamp > current.timestamp


@given(DUMPED, CURRENT, TIMES)
def test_R31_an_object_of_the_dump_is_inserted_where_it_is_missing_or_deleted_before(line, current, start):
    is_missing = current is None or (current.deleted and current.timestamp < start)
    inserts = decide(line, current, start).event is EventName.INSERT
    assert inserts == (line is not None and is_missing)


@given(DUMPED, CURRENT, TIMES)
def test_R32_an_object_that_the_dump_lacks_is_deleted_unless_it_is_or_has_changed_since(line, current, start):
    is_old = current is not None and not current.deleted and current.timestamp < start
    assert (decide(line, current, start) is Outcome.DELETE) == (line is None and is_old)


@given(st.lists(TIMES, min_size=1), TIMES)
def test_H13_with_start_newest_an_older_object_that_the_dump_lacks_is_deleted(times, changed):
    outcome = decide(None, CurrentObject(False, changed, ()), max(times))
    assert (outcome is Outcome.DELETE) == (changed < max(times))
