"""Two renditions of a collection: the same at every time, different in ways that are found, and explained."""

import pickle

import pytest
from tests.support.compared_world import EXACT, EXPLAINED, RenditionWorld
from tests.support.memory_collection import given_declared

from tidemark.connections import CassandraConnection
from tidemark.consensus.objects import Change
from tidemark.outputs.model.rendition import RenditionState
from tidemark.pipeline.expect import Expectation, RowChange
from tidemark.verification.renditions.collection import NO_DIGESTS, RangeComparison, Times
from tidemark.verification.renditions.difference import RowDifference
from tidemark.verification.renditions.errors import NotComparable
from tidemark.verification.renditions.matching import RuleMatcher
from tidemark.writers.collection.writer import CollectionWriter

pytestmark = pytest.mark.unit

NOT_TWO = {"skip": {"field": "balance", "operator": "<", "match": 2}}
DELETES_TWO = {"skip": {**NOT_TWO["skip"], "then": "delete"}}


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Accounts in two partitions and at three times."""
    world = RenditionWorld(tmp_path, monkeypatch)
    world.publish_records("a=1 b=1", "c=1")
    world.publish_records("a=2 b", "c=1 d=3")
    world.publish_records("a=1", "c=2")
    world.deliver(world.started())
    return world


def lose(world, number, id_):
    """A row that is no longer in a rendition's table."""
    tables = world.tables[number]
    (row,) = [row for row in tables.rows if row.message_id == id_]
    del tables._cells[row.key, row.t, row.message_id]


# Exact


@pytest.mark.parametrize("shards", [1, 4, 16])
def test_renditions_with_other_shards_are_the_same(world, shards):
    world.build(shards=shards)
    report = world.verify()
    assert (report.is_clean, report.differences, report.looked_at["bindings"]) == (True, 0, 3)
    assert (report.t, report.candidate.position, report.active.position) == (3_000, 8, 8)
    assert world.state_of(2) == RenditionState.VERIFIED
    assert world.found.rendition(2).evidence == report.evidence()


def test_a_row_that_is_lost_in_the_table_is_found_although_its_digest_is_right(world):
    world.build()
    lose(world, 2, 7)
    report = world.verify()
    assert (report.is_clean, report.changes) == (False, {"changed": 1})
    (group,) = report.samples
    assert group.said == ("id a at 3000: balance 1 → 2",)
    assert world.state_of(2) == RenditionState.BUILDING


def test_a_transform_that_drops_messages_is_a_difference_at_every_time(world):
    world.build(transforms=[NOT_TWO])
    report = world.verify()
    assert not report.is_clean
    # At 2000 a is 1 instead of 2; d is not there at all; at 3000 c is 1 instead of 2.
    assert report.changes == {"missing": 1, "changed": 2}
    assert report.columns == {"balance": 2}


def test_a_difference_in_the_past_only_is_found(world):
    """At the last time, both are the same."""
    world.build(transforms=[{"skip": {"field": "balance", "operator": "<", "match": 3}}])
    world.publish_records("a=1", "d")
    for number in (1, 2):
        world.deliver(world.writer_of(number))
    report = world.verify()
    assert report.changes == {"missing": 1}
    assert report.samples[0].said[0].startswith("id d at 2000: missing")


def test_a_row_that_no_reader_gets_is_a_difference_too(tmp_path, monkeypatch):
    """Of two messages of a key at one time, the later one is the row."""
    world = RenditionWorld(tmp_path, monkeypatch)
    world.publish_records("z=1 z=2")
    world.deliver(world.started())
    world.build(transforms=[{"skip": {"field": "balance", "operator": ">", "match": 1}}])
    report = world.verify()
    assert report.changes == {"changed": 1}
    assert report.samples[0].said[0].startswith("all rows at 1000: digest 2:")
    assert world.verify(EXPLAINED).is_clean


def test_a_binding_without_digests_is_compared_by_its_rows(world):
    world.build()
    state = world.positions.load("accounts.r2")
    row = f"digest/{1_000:020d}"
    world.consensus.commit(world.positions.key("accounts.r2"), state.version, Change(deletes=[row]))
    report = world.verify()
    assert (report.is_clean, report.not_compared) == (True, {NO_DIGESTS: 1})


def test_another_column_is_a_difference_even_where_it_is_empty(world):
    world.build(columns={"owner": "text", "balance": "int", "note": "text"})
    report = world.verify()
    assert report.samples[0].said == ("type of column note: note null → text",)
    assert world.expecting({"column": "note"}).is_clean


def test_columns_in_another_order_are_the_same(world):
    world.build(columns={"balance": "int", "owner": "text"})
    assert world.verify().is_clean


def test_a_column_of_another_type_is_explained_once(world):
    world.build(columns={"owner": "text", "balance": "bigint"})
    report = world.expecting({"column": "balance", "at_most": 1})
    assert (report.is_clean, report.differences) == (True, 1)


def test_another_key_cannot_be_compared(world):
    world.build(key={"name": "text"})
    with pytest.raises(NotComparable, match="the key is name text instead of id text"):
        world.verify()


def test_before_the_first_time_of_the_new_rendition_only_its_state_counts(world):
    """As after compaction: older versions are not there, and what readers get at that time is."""
    world.since = 2_000
    world.build()
    for id_ in (0, 2):
        lose(world, 2, id_)
    report = world.verify()
    assert (report.is_clean, report.looked_at["bindings"]) == (True, 1)
    lose(world, 2, 3)
    assert not world.verify().is_clean


def test_an_empty_log_is_the_same(tmp_path, monkeypatch):
    world = RenditionWorld(tmp_path, monkeypatch)
    world.publish_records("-")
    world.deliver(world.started())
    world.build()
    report = world.verify()
    assert (report.is_clean, report.looked_at) == (True, {"rows": 0, "bindings": 1})


# Explained


def test_a_rule_for_missing_rows_and_one_for_a_column_explain_a_filter(world):
    world.build(transforms=[NOT_TWO])
    report = world.expecting(
        {"rows": "missing", "where": "balance >= 2", "reason": "large accounts are kept elsewhere"},
        {"column": "balance", "where": "old.balance == 2 and new.balance == 1"},
    )
    assert (report.is_clean, report.differences, report.explained) == (True, 3, 3)
    assert [one.matched for one in report.rules] == [1, 2]
    assert world.state_of(2) == RenditionState.VERIFIED


def test_a_filter_that_deletes_makes_rows_disappear(world):
    world.build(transforms=[DELETES_TWO])
    report = world.expecting({"rows": "missing", "at_most": 3})
    assert (report.is_clean, report.changes) == (True, {"missing": 3})


@pytest.mark.parametrize(
    "rule",
    [
        {"rows": "missing", "where": "id == d"},
        {"rows": "added"},
        {"column": "owner"},
        {"column": "balance", "at_most": 1},
    ],
)
def test_what_no_rule_covers_is_unexplained(world, rule):
    world.build(transforms=[NOT_TWO])
    report = world.expecting(rule)
    assert not report.is_clean
    assert world.state_of(2) == RenditionState.BUILDING


def test_rows_only_in_the_new_rendition_are_added(tmp_path, monkeypatch):
    world = RenditionWorld(tmp_path, monkeypatch, transforms=[NOT_TWO])
    world.publish_records("a=1 b=2")
    world.deliver(world.started())
    world.build()
    report = world.expecting({"rows": "added", "where": "balance == 2 and message_id == 1"})
    assert (report.is_clean, report.changes) == (True, {"added": 1})


def test_rules_are_not_used_in_an_exact_comparison(world):
    world.build(transforms=[NOT_TWO])
    world.expecting({"rows": "missing"}, {"rows": "changed"})
    assert world.state_of(2) == RenditionState.VERIFIED
    report = world.verify(EXACT)
    assert (report.explained, report.rules, report.is_clean) == (0, (), False)
    assert world.state_of(2) == RenditionState.BUILDING  # the newest comparison counts


def test_a_comparison_without_rules_is_clean_where_nothing_differs(world):
    world.build()
    assert world.verify(EXPLAINED).is_clean


def test_a_comparison_of_ranges_is_sent_to_tasks():
    rule = Expectation.model_validate({"rows": "missing", "where": "owner == carol", "reason": "meant"})
    connection = CassandraConnection(hosts=("127.0.0.1",))
    writers = (CollectionWriter("orders", given_declared(shards=n), connection) for n in (4, 8))
    matcher = RuleMatcher((rule,), frozenset({1}))
    missing = RowDifference(RowChange.MISSING, "a", (), {"owner": "carol"}, None)
    assert matcher.explain(missing) == (0,)
    sent = pickle.loads(pickle.dumps(RangeComparison(*writers, Times(0, 9), matcher)))
    assert (sent.new.declared.shards, sent.times, sent.matcher) == (8, Times(0, 9), matcher)
    assert sent.matcher.explain(missing) == (0,)


# Acknowledged ids


def test_an_id_that_only_one_of_them_has_is_a_difference_to_explain(tmp_path, monkeypatch):
    world = RenditionWorld(tmp_path, monkeypatch)
    world.publish_records("a=1 b=x c=1")
    world.deliver(world.started())
    world.acknowledge(world.started(), 1)
    world.resume(world.started())
    world.build(columns={"owner": "text"})
    report = world.expecting({"column": "balance"})
    assert report.only_acknowledged == {1: (1,)}
    assert (report.is_clean, report.changes["added"]) == (False, 1)
    assert world.expecting({"column": "balance"}, {"rows": "added", "where": "message_id == 1"}).is_clean


def test_an_id_that_was_acknowledged_for_both_is_none(tmp_path, monkeypatch):
    world = RenditionWorld(tmp_path, monkeypatch)
    world.publish_records("a=1 b=x c=1")
    world.deliver(world.started())
    world.acknowledge(world.started(), 1)
    world.resume(world.started())
    world.build()
    world.acknowledge(world.writer_of(2), 1)
    world.resume(world.writer_of(2))
    report = world.verify()
    assert (report.is_clean, report.candidate.acknowledged, report.only_acknowledged) == (True, (1,), {})
