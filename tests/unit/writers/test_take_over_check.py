"""What a take-over needs, said in one line each: pure judgements of what was found."""

import pytest
from tests.support.replicator_samples import PLACE, WRITER, Theirs, declared

from tidemark.clock import SECOND
from tidemark.journal_tables.schema.layout import CREATED, TABLES, Found, name_of
from tidemark.journal_tables.statements import Pointer
from tidemark.log.model.binding import Offsets
from tidemark.pipeline.model import JournalDeclaration
from tidemark.writers.replicator.take_over_check import (
    Condition,
    TakeOverCheck,
    judge_clocks,
    judge_groups,
    judge_keyspace,
    judge_pointers,
    judge_writer,
)

pytestmark = pytest.mark.unit

JOURNAL = JournalDeclaration.model_validate({"name": "cassandra", "kind": "journal"}, context={})


def given_keyspace(grace: int = 864_000, version: str = "8") -> Found:
    tables = {name_of(JOURNAL, table): TABLES[table] for table in CREATED}
    indexed = frozenset([("metajournal", "expire_on"), ("metajournal", "created")])
    return Found(True, tables, dict.fromkeys(tables, grace), indexed, version)


def test_a_group_with_members_is_in_the_way_and_names_them():
    found = list(judge_groups(["a", "b"], {"replicator-b": ("them at 10.0.0.1",)}))
    assert [(one.what, one.is_met) for one in found] == [
        ("group replicator-a", True),
        ("group replicator-b", False),
    ]
    assert "them at 10.0.0.1" in found[1].found


@pytest.mark.parametrize(
    ("pointer", "is_met", "said"),
    [
        pytest.param(Pointer(7, 0), True, "7; the topic holds offsets 5 to 9", id="inside"),
        pytest.param(Pointer(4, 0), True, "4; ", id="right before the first"),
        pytest.param(Pointer(9, 0), True, "9; ", id="at the last"),
        pytest.param(Pointer(3, 0), False, "offsets 4 to 4 are lost", id="before what is left"),
        pytest.param(Pointer(10, 0), False, "another topic", id="behind the last"),
    ],
)
def test_kafka_has_to_hold_what_comes_behind_a_pointer(pointer, is_met, said):
    (found,) = judge_pointers({PLACE: Offsets(5, 10)}, {PLACE: pointer})
    assert (found.what, found.is_met, said in found.found) == ("pointer of orders/0", is_met, True), found


def test_a_partition_without_a_pointer_begins_at_its_earliest():
    other = ("orders", 1)
    found = list(judge_pointers({PLACE: Offsets(5, 5), other: Offsets(3, 9)}, {PLACE: Pointer(4, 0)}))
    assert [one.is_met for one in found] == [True, True]
    assert "the topic is empty" in found[0].found
    assert "begins at offset 3" in found[1].found


def test_no_pointer_at_all_is_nothing_to_take_over():
    (found,) = judge_pointers({PLACE: Offsets(0, 5)}, {})
    assert (found.is_met, "nothing to take over" in found.found) == (False, True)


def test_a_keyspace_as_kafka_journal_made_it_is_good():
    found = list(judge_keyspace("orders", JOURNAL, given_keyspace()))
    assert [one.is_met for one in found] == [True] * len(found)
    assert Condition("gc_grace_seconds of journal", "864000") in found


def test_i19_gc_grace_seconds_is_looked_at():
    """Item 19: the page gave no command for it."""
    found = {one.what: one for one in judge_keyspace("orders", JOURNAL, given_keyspace(grace=60))}
    assert not found["gc_grace_seconds of journal"].is_met
    assert "ALTER TABLE" in found["keyspace journal"].found


@pytest.mark.parametrize(
    ("keyspace", "said"),
    [(Found(), "does not exist"), (given_keyspace(version="99"), "schema version 99")],
    ids=["missing", "newer"],
)
def test_a_keyspace_that_cannot_be_written_is_in_the_way(keyspace, said):
    found = list(judge_keyspace("orders", JOURNAL, keyspace))
    assert (found[0].is_met, said in found[0].found) == (False, True), found


@pytest.mark.parametrize(("difference", "is_met"), [(3 * SECOND, True), (11 * SECOND, False)])
def test_clocks_have_to_agree(difference, is_met):
    assert judge_clocks("orders", 100 * SECOND + difference, 100 * SECOND).is_met == is_met


@pytest.mark.parametrize(("start", "is_met"), [("pointers", True), ("earliest", False)])
def test_a_writer_that_never_ran_has_to_begin_at_the_pointers(tmp_path, monkeypatch, start, is_met):
    positions = Theirs(tmp_path, monkeypatch).positions
    assert judge_writer(declared(start), JOURNAL, None, positions, None).is_met == is_met


def test_a_writer_that_handed_back_is_ready_unless_something_objects(tmp_path, monkeypatch):
    theirs = Theirs(tmp_path, monkeypatch)
    theirs.stop()
    theirs.hand_back()
    state = theirs.state(WRITER)
    ready = judge_writer(theirs.pipeline, JOURNAL, state, theirs.positions, None)
    refused = judge_writer(theirs.pipeline, JOURNAL, state, theirs.positions, "the log is ahead")
    assert (ready.is_met, "take-over orders cassandra" in ready.found) == (True, True)
    assert (refused.is_met, refused.found) == (False, "the log is ahead")


def test_the_result_is_lines_for_people_and_json_for_programs():
    found = TakeOverCheck("orders", "cassandra", (Condition("clock", "1 s"), Condition("x", "bad", False)))
    assert list(found.to_lines()) == [
        "ok  clock  1 s",
        "NO  x      bad",
        "orders/cassandra: 1 not met; see NO above.",
    ]
    assert (found.to_dict()["ready"], len(found.to_dict()["conditions"])) == (False, 2)
