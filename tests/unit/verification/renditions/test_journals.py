"""Two renditions of a journal: entities as readers get them, and pointers."""

import pytest
from tests.support.found_in_memory import FoundInMemory
from tests.support.journal_samples import TOPIC, ActionLog, JournalWorld

from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.pipeline.expect import Expectation, RowChange
from tidemark.verification.renditions.journal import EntityComparison, compare_pointers, row_difference
from tidemark.verification.renditions.matching import RuleMatcher

pytestmark = pytest.mark.unit


def given(history, **settings):
    world = JournalWorld(ActionLog(), **settings)
    world.actions.publish(history)
    world.go("in bulk")
    return world


def compared(old, new, *rules, keys=("a", "b"), only_new=False):
    matcher = RuleMatcher(tuple(Expectation.model_validate({"reason": "meant", **one}) for one in rules))
    tables = (FoundInMemory(one.journal) for one in (old, new))
    segments = {key: set(range(100)) for key in keys}
    return EntityComparison(*tables, matcher).compare(TOPIC, segments, only_new=only_new)


def test_the_same_history_gives_the_same_entities():
    old, new = (given("a:A1 a:A2 b:A1 a:D1") for _ in range(2))
    assert (compared(old, new).total, compared(old, new).rows) == (0, 2)
    assert compared(old, new, only_new=True).rows == 0  # they are compared where the active one has them


def test_entities_of_only_one_of_them_are_missing_or_added():
    old, new = given("a:A1"), given("b:A1 b:A2")
    missing, added = compared(old, new), compared(old, new, only_new=True)
    assert (missing.changes, added.changes) == ({RowChange.MISSING: 1}, {RowChange.ADDED: 1})
    assert compared(old, new, {"rows": "missing", "where": "key == a"}).unexplained == 0
    assert compared(old, new, {"rows": "added", "where": "seq_nr == 2"}, only_new=True).unexplained == 0


def test_events_and_heads_that_differ_are_found():
    old, new = given("a:A1 a:A2 a:A3"), given("a:A1 a:A2")
    found = compared(old, new)
    assert (found.changes, found.columns) == ({RowChange.CHANGED: 1, RowChange.MISSING: 1}, {"seq_nr": 1})
    rules = {"rows": "missing", "where": "row == event and seq_nr == 3"}, {"column": "seq_nr"}
    assert compared(old, new, *rules).unexplained == 0


def test_another_segment_size_is_explained_by_one_rule():
    history = "a:A1 a:A2 a:A3 b:A1"
    old, new = given(history), given(history, segment_size=2)
    assert compared(old, new).columns == {"segment_size": 2}
    assert compared(old, new, {"column": "segment_size", "where": "new.segment_size == 2"}).unexplained == 0


def test_every_event_of_an_entity_is_matched():
    """Not only the first ones, as where differences are shown."""
    history = " ".join(f"a:A{n}" for n in range(1, 60))
    old, new = given(history), given("a:A1")
    found = compared(old, new, {"rows": "missing"}, {"column": "seq_nr"})
    assert (found.total, found.unexplained, found.by_rule) == (59, 0, {0: 58, 1: 1})


def test_a_head_that_was_found_where_readers_do_not_look_is_not_compared():
    old, new = given("a:A1"), given("a:A2")
    matcher, tables = RuleMatcher(), [FoundInMemory(one.journal) for one in (old, new)]
    assert EntityComparison(*tables, matcher).compare(TOPIC, {"a": {99_999}}).rows == 0


def test_pointers_that_differ_are_changes():
    (behind, gone) = compare_pointers({("t", 0): 5, ("t", 1): 7, ("t", 2): 1}, {("t", 0): 4, ("t", 2): 1})
    assert behind.said == "pointer of t/0: pointer2 5 → 4"
    assert gone.said == "pointer of t/1: pointer2 7 → null"


BETWEEN = [kind for kind in DifferenceKind if not kind.is_about_pointer and "partition" not in kind]


@pytest.mark.parametrize("kind", BETWEEN)
def test_every_difference_of_an_entity_can_be_matched(kind):
    found = row_difference(Difference(kind, "t", "a", seq_nr=1, columns=("seq_nr",), expected=1, found=2))
    assert (found.columns == ("seq_nr",)) == (found.change is RowChange.CHANGED)
    assert found.said
