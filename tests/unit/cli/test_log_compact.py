"""``tidemark log compact``: a plan first, and what doing it leaves."""

import json
from dataclasses import replace

import pytest
from tests.support.compaction_samples import JOURNAL, added, deleted
from tests.support.compaction_world import HOUR, World

from tidemark.log.model import manifest
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit


@pytest.fixture
def compactable(control, root) -> LogControl:
    """A journal's log with three segments, whose writers are at the end."""
    world = World(root, JOURNAL, consensus=control._consensus)
    world.publish(added(1), added(2))
    world.publish(added(3), deleted(3))
    world.publish(replace(added(1), key=b"z"))
    for writer in ("cassandra", "archive"):
        world.move(4, writer)
    head = control.bindings_head()
    control.advance_upper(head, head.upper + 2 * HOUR)
    return control


def test_compact_shows_its_plan_and_changes_nothing(run, compactable):
    before = compactable.log_head()
    ended = run("log", "compact", "orders")
    assert ended.code == 0
    assert "messages below id 4 may go" in ended.out
    assert "goes: 2 deleted, and the delete stays" in ended.out
    assert 'Nothing was changed. Add --execute --reason "…" to do it.' in ended.out
    assert compactable.log_head() == before


def test_compact_as_json_names_who_holds_it_back(run, compactable):
    plan = json.loads(run("log", "compact", "orders", "--json").out)
    assert (plan["watermark"], plan["held_back_by"], plan["dropped"]) == (4, "archive", 2)
    assert plan["segments"][0]["messages_after"] == 0
    assert (plan["executed"], plan["history"]) == (False, [])


def test_compact_executes_with_a_reason_and_keeps_it(run, compactable):
    ended = run("log", "compact", "orders", "--execute", "--reason", "disk is full", "--by", "ann", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["messages_after"] == 3
    assert compactable.log_head().compacted_below == 4
    history = json.loads(run("log", "compact", "orders", "--json").out)["history"]
    assert [(one["by"], one["outcome"]) for one in history] == [("compaction by ann", "compacted")]
    (kept,) = compactable.decisions()
    assert (kept.what, kept.who, kept.reason) == ("compact", "ann", "disk is full")


def test_compact_needs_a_reason_to_execute(run, compactable):
    ended = run("log", "compact", "orders", "--execute")
    assert ended.code == 2
    assert "say why" in ended.err
    assert compactable.log_head().compacted_below == 0


def test_compact_refuses_a_policy_that_does_not_exist(run, compactable):
    ended = run("log", "compact", "orders", "--policy", "lates")
    assert ended.code == 2
    assert "journal, latest, progress" in ended.err


@pytest.fixture
def keeping_all(control, root, installation, monkeypatch) -> LogControl:
    """A log of policy none with small files in closed segments."""
    path = installation / "include" / "pipelines" / "orders.yaml"
    path.write_text(path.read_text() + "log: {compaction: {policy: none}}\n")
    monkeypatch.setattr(manifest, "MAX_FILES_PER_SEGMENT", 2)
    world = World(root, "none", segment_bytes=10**9, consensus=control._consensus)
    for number in range(1, 6):
        world.publish(added(number))
    return control


def test_compact_with_policy_none_shows_which_small_files_it_would_merge(run, keeping_all):
    before = keeping_all.log_head()
    ended = run("log", "compact", "orders")
    assert ended.code == 0
    assert "policy none, no message is dropped" in ended.out
    assert "small files: 4 in 2 segments are written as 2 in 2" in ended.out
    assert keeping_all.log_head() == before


def test_compact_with_policy_none_merges_small_files_and_keeps_the_reason(run, keeping_all):
    ended = run("log", "compact", "orders", "--execute", "--reason", "many files", "--by", "ann", "--json")
    assert json.loads(ended.out)["merge"]["files_after"] == 2
    head = keeping_all.log_head()
    assert (head.count, head.compacted_below) == (5, 0)
    (kept,) = keeping_all.decisions()
    assert (kept.what, kept.who, kept.reason) == ("compact", "ann", "many files")
    assert run("log", "verify", "orders").code == 0


def test_compact_refuses_the_policy_of_journals_for_other_messages(run, compactable, installation):
    path = installation / "include" / "pipelines" / "orders.yaml"
    text = path.read_text().replace('topic_prefixes: ["eu."]', 'topic_prefixes: ["eu."], format: raw')
    path.write_text(text.replace("  - {name: cassandra, kind: journal}\n", ""))
    before = compactable.log_head()
    ended = run("log", "compact", "orders", "--policy", "journal", "--execute", "--reason", "why not")
    assert ended.code == 1
    assert "is for kafka-journal messages, and these are raw" in ended.err
    assert compactable.log_head() == before
