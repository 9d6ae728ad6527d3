"""A topic that was made again and accepted so: its old journal goes on without it, a new one begins with it
(item 12). Nothing is left out in silence, and nothing that compares offsets ever mixes the two."""

from typing import Any

import pytest
from tests.support.faults import Killed
from tests.support.found_in_memory import FoundInMemory
from tests.support.pipeline_world import PipelineWorld
from tests.support.recreated_samples import TopicsLog, TopicsWorld

from tidemark.delivery.compacted_history import HistoryCompacted
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.state.writer_state import Cause, TopicStart, WriterGate, WriterState
from tidemark.delivery.writer_topics import NothingRecreated
from tidemark.faults import FaultPoint
from tidemark.log.model.loss import LossKind
from tidemark.pipeline.model import WriterStart
from tidemark.verification.basis import read_basis
from tidemark.verification.journal.history import MessageFate, read_history
from tidemark.verification.journal.messages import files_of
from tidemark.verification.selection import Entity

pytestmark = pytest.mark.unit

WAYS = ["in bulk", "singly", "mixed"]


def given_two_topics(**settings: Any) -> TopicsWorld:
    """``a`` and ``b``, both delivered."""
    house = TopicsWorld(TopicsLog(), **settings)
    house.actions.publish_topics(a="k:A1 k:A2 j:A1", b="k:A1")  # ids 0 to 3
    house.go("in bulk")
    return house


def given_recreated(**settings: Any) -> TopicsWorld:
    """``a`` is made again; its first two messages are published, with two of ``b``."""
    house = given_two_topics(**settings)
    house.actions.recreate("a")
    house.actions.publish_topics(a="k:A1 i:A1", b="k:A2 k:A3")  # ids 4 and 5 are a's, 6 and 7 b's
    return house


# The old journal


@pytest.mark.parametrize("way", WAYS)
def test_the_old_journal_goes_on_with_the_other_topics_and_counts_what_it_leaves_out(way: str) -> None:
    house = given_recreated()
    house.go(way)
    house.actions.publish_topics(a="k:A2 k:A3 k:A4", b="k:A4")
    house.go(way)
    assert (house.position(house.process), house.gate(house.process)) == (11, None)
    assert house.seen("a", "k", "j", "i") == {"k": [1, 2], "j": [1], "i": None}
    assert house.seen("b", "k") == {"k": [1, 2, 3, 4]}
    assert house.journal.pointers == {("a", 0): 2, ("b", 0): 3}
    (left,) = house.positions.left_out("journal").values()
    assert (left.topic, left.topic_id, left.first_id, left.through, left.messages) == ("a", "a-1", 4, 11, 5)
    assert (left.who, left.reason) == ("ann", "known")
    assert house.positions.namespaces("journal") == {"a": 2, "b": 11}


def test_what_is_left_out_is_part_of_what_a_run_came_to() -> None:
    house = given_recreated()
    delivered = house.deliver(house.started())
    assert (delivered.total.written, delivered.total.ignored, delivered.total.details["left_out"]) == (
        2,
        2,
        2,
    )


def test_messages_that_are_delivered_again_are_not_counted_twice() -> None:
    house = given_recreated()
    house.go("in bulk")
    house.rewind("journal", -1)
    house.go("in bulk")
    house.deliver_again(house.started())
    assert house.positions.left_out("journal")["a"].messages == 2
    assert house.seen("a", "k", "j") == {"k": [1, 2], "j": [1]}
    assert house.journal.pointers == {("a", 0): 2, ("b", 0): 2}


def test_a_resume_that_goes_on_in_bulk_keeps_what_was_counted_in_bulk() -> None:
    house = given_recreated()
    house.actions.publish_topics(a="k:A2 i:A2 i:A3", b="k:A4 k:A5")  # ids 8 to 12
    house.actions.publish_topics(a="k:A3", b="k:A6 k:A7")  # ids 13 to 15
    journal = house.started()
    house.close_gate(journal, WriterGate(Cause.TARGET, 4, 15, 15, "no answer", house.clock()))
    resumed = house.resume(journal, singly=1)
    assert (resumed.position, resumed.gate) == (15, None)
    left = house.positions.left_out("journal")["a"]
    assert (left.messages, left.through) == (6, 15)


def test_a_binding_with_nothing_but_the_topic_that_is_left_out_is_passed() -> None:
    house = given_two_topics()
    house.actions.recreate("a")
    house.actions.publish_topics(a="k:A1 k:A2")
    house.go("in bulk")
    assert (house.position(house.process), house.gate(house.process)) == (5, None)
    assert house.journal.pointers == {("a", 0): 2, ("b", 0): 0}


def test_a_journal_all_of_whose_topics_were_made_again_stops_and_says_how_to_go_on() -> None:
    house = given_recreated(namespaces="^a$")
    house.go("in bulk")
    gate = house.gate(house.process)
    assert gate is not None
    assert (gate.cause, gate.first_id, house.position(house.process)) == (Cause.TARGET, 4, 3)
    assert "every topic that it takes was deleted and made again: a (from id 4 on)" in gate.reason
    assert "a keyspace of its own and `start: recreated`" in gate.reason
    house.go("singly")  # a resume does not change that
    assert (house.position(house.process), house.positions.left_out("journal")) == (3, {})


def test_one_after_the_other_made_again_the_journal_stops_when_none_is_left() -> None:
    house = given_recreated()
    house.go("in bulk")
    house.actions.recreate("b")
    house.actions.publish_topics(b="k:A1")
    house.go("in bulk")
    gate = house.gate(house.process)
    assert gate is not None
    assert "made again: a (from id 4 on), b (from id 8 on)" in gate.reason


def test_a_topic_that_the_file_names_counts_although_nothing_of_it_was_ever_bound() -> None:
    house = TopicsWorld(TopicsLog(), named=("a", "c"))
    house.actions.publish_topics(a="k:A1")
    house.go("in bulk")
    house.actions.recreate("a")
    house.actions.publish_topics(a="k:A1")
    house.actions.publish_topics(c="k:A1")
    house.go("in bulk")
    assert (house.gate(house.process), house.seen("c", "k")) == (None, {"k": [1]})


def test_without_a_plan_that_said_so_nothing_is_left_out() -> None:
    house = given_two_topics()
    house.actions.recreate("a", is_planned=False)
    house.actions.publish_topics(a="k:A1", b="k:A2")
    house.go("in bulk")
    gate = house.gate(house.process)
    assert gate is not None
    assert "ann accepted that before it was part of the plan" in gate.reason
    assert "tidemark log accept orders --execute" in gate.reason
    assert house.seen("b", "k") == {"k": [1]}
    house.actions.accept_again()
    house.go("singly")
    assert (house.gate(house.process), house.seen("b", "k")) == (None, {"k": [1, 2]})


def test_a_topic_that_was_deleted_and_later_is_there_again_is_another_one_too() -> None:
    house = given_two_topics()
    house.actions.recreate("a", LossKind.DELETED)
    house.actions.publish_topics(a="k:A1", b="k:A2")
    house.go("in bulk")
    assert (house.gate(house.process), house.positions.left_out("journal")["a"].messages) == (None, 1)


def test_a_bad_message_stops_the_journal_as_ever_and_can_be_acknowledged_among_what_is_left_out() -> None:
    house = given_two_topics()
    house.actions.recreate("a")
    house.actions.publish_topics(a="k:A1 k:A2!", b="k:A2! k:A3")  # ids 4 and 5 are a's, 6 and 7 b's
    house.go("in bulk")
    gate = house.gate(house.process)
    assert gate is not None
    assert (gate.cause, gate.first_id, house.position(house.process)) == (Cause.MESSAGE, 6, 5)
    assert house.positions.left_out("journal")["a"].messages == 2
    with pytest.raises(NotPossible, match="it waits for id 6"):
        house.acknowledge(house.started(), 4)
    house.acknowledge(house.started(), 6)
    house.go("in bulk")
    assert (house.position(house.process), house.seen("b", "k")) == (7, {"k": [1, 3]})
    assert house.journal.pointers == {("a", 0): 2, ("b", 0): 2}
    assert house.positions.left_out("journal")["a"].messages == 2


def test_a_journal_that_begins_with_the_log_later_leaves_out_the_same() -> None:
    house = given_recreated()
    house.actions.publish_topics(b="k:A4")
    house.go("in bulk")
    assert house.seen("a", "k", "j", "i") == {"k": [1, 2], "j": [1], "i": None}
    assert house.journal.pointers == {("a", 0): 2, ("b", 0): 3}


def test_a_partition_that_only_the_new_topic_has_is_left_out_and_one_it_lacks_keeps_its_pointer() -> None:
    house = TopicsWorld(TopicsLog())
    house.actions.publish_topics(a=["k:A1", "j:A1"], b="k:A1")
    house.go("in bulk")
    house.actions.recreate("a")
    house.actions.publish_topics(a=["k:A1"])
    house.actions.recreate("a")
    house.actions.publish_topics(a=["", "", "k:A1 k:A2"])
    house.go("in bulk")
    assert house.gate(house.process) is None
    assert house.journal.pointers == {("a", 0): 0, ("a", 1): 0, ("b", 0): 0}
    assert house.positions.left_out("journal")["a"].messages == 3


def test_writers_that_compare_no_offsets_take_everything(tmp_path) -> None:
    house = PipelineWorld(tmp_path)
    house.publish(orders="ab")
    writer = house.files_writer()
    assert writer.leaving_out(frozenset({"orders"})) is None


# The new journal


@pytest.mark.parametrize("way", WAYS)
def test_a_journal_begins_exactly_where_the_new_topic_begins(way: str) -> None:
    house = given_recreated()
    house.go(way)
    delivered = house.deliver_recreated(namespaces="^a$")
    assert (delivered.position, delivered.gate, delivered.failure) == (7, None, None)
    assert house.seen("a", "k", "j", "i", journal=house.second) == {"k": [1], "j": None, "i": [1]}
    assert house.second.pointers == {("a", 0): 1}
    state = house.positions.load("second")
    assert state is not None
    assert state.starts == {"a": TopicStart(1, 4, "a-1")}
    assert WriterState.from_row("orders", "second", state.version, state.to_row()) == state
    house.actions.publish_topics(a="k:A2", b="k:A4")
    house.deliver(house.recreated(namespaces="^a$"))
    assert house.seen("a", "k", journal=house.second) == {"k": [1, 2]}


def test_the_new_topic_may_begin_in_the_middle_of_a_binding() -> None:
    house = given_two_topics()
    house.actions.recreate("b")
    house.actions.publish_topics(a="k:A3 k:A4", b="k:A1 k:A2")  # ids 4 and 5 are a's, 6 and 7 b's
    house.go("in bulk")
    house.deliver_recreated(namespaces="^b$")
    assert house.positions.load("second").starts["b"].first_id == 6
    assert house.seen("b", "k", journal=house.second) == {"k": [1, 2]}
    assert house.second.pointers == {("b", 0): 1}
    assert house.positions.left_out("second") == {}


def test_topics_that_were_made_again_at_different_times_go_into_one_journal() -> None:
    house = given_recreated()
    house.actions.recreate("b")
    house.actions.publish_topics(b="k:A1")
    house.deliver_recreated()
    assert house.seen("a", "k", journal=house.second) == {"k": [1]}
    assert house.seen("b", "k", journal=house.second) == {"k": [1]}
    assert house.second.pointers == {("a", 0): 1, ("b", 0): 0}


def test_made_again_twice_a_new_journal_begins_with_the_last_and_the_one_between_leaves_it_out() -> None:
    house = given_recreated()
    house.deliver_recreated(namespaces="^a$")
    house.actions.recreate("a")
    house.actions.publish_topics(a="k:A1 k:A2 k:A3", b="k:A4")
    house.go("in bulk")
    stopped = house.deliver(house.recreated(namespaces="^a$"))
    assert stopped.gate is not None
    assert "made again: a (from id 8 on)" in stopped.gate.reason
    third = house.recreated(namespaces="^a$", name="third")
    third.tables.journal = type(house.second)()
    delivered = house.deliver(third, start=WriterStart.RECREATED)
    assert delivered.gate is None
    assert house.positions.load("third").starts == {"a": TopicStart(2, 8, "a-2")}
    assert house.seen("a", "k", journal=third.tables.journal) == {"k": [1, 2, 3]}


def test_before_anything_of_the_new_topic_is_captured_it_begins_with_its_first_message() -> None:
    house = given_two_topics()
    house.actions.recreate("a")
    house.deliver_recreated(namespaces="^a$")
    assert house.positions.load("second").starts == {"a": TopicStart(1, 4)}
    house.actions.publish_topics(b="k:A2")
    house.actions.publish_topics(a="k:A1")
    house.deliver(house.recreated(namespaces="^a$"))
    assert house.seen("a", "k", journal=house.second) == {"k": [1]}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"namespaces": "^b$"}, "no topic that it takes was accepted as made again"),
        ({}, "it also takes topic b, which was not made again and is in the log from id 3 on"),
    ],
    ids=["nothing was made again", "something else too"],
)
def test_a_beginning_that_would_leave_gaps_is_refused_and_nothing_is_registered(
    keys: dict[str, str], problem: str
) -> None:
    house = given_recreated()
    with pytest.raises(NothingRecreated, match=problem):
        house.deliver_recreated(**keys)
    assert house.positions.load("second") is None
    assert house.second.pointers == {}


def test_a_keyspace_that_is_not_empty_is_refused() -> None:
    house = given_recreated()
    house.second = house.journal
    with pytest.raises(NothingRecreated, match="keyspace second is not empty"):
        house.deliver_recreated(namespaces="^a$")
    assert house.positions.load("second") is None


def test_a_rewind_goes_back_to_the_beginning_and_no_further() -> None:
    house = given_recreated()
    house.deliver_recreated(namespaces="^a$")
    with pytest.raises(NotPossible, match="a rewind goes to an id from 3 to 6"):
        house.rewind("second", -1)
    house.rewind("second", 3)
    house.deliver(house.recreated(namespaces="^a$"))
    assert house.seen("a", "k", "i", journal=house.second) == {"k": [1], "i": [1]}


def test_a_log_compacted_by_another_policy_is_refused_and_one_by_policy_journal_is_not() -> None:
    house = given_recreated()
    house.actions.compact(8, (), "latest")
    with pytest.raises(HistoryCompacted):
        house.deliver_recreated(namespaces="^a$")
    house = given_recreated()
    house.actions.compact(8, (), "journal")
    assert house.deliver_recreated(namespaces="^a$").gate is None


# What proves them, and what readers are told


def test_both_journals_are_proved_by_the_messages_of_their_own_topic() -> None:
    house = given_recreated()
    house.go("in bulk")
    house.deliver_recreated(namespaces="^a$")
    second = house.recreated(namespaces="^a$")
    old = house.judged(house.process, "a", "k", "j", "i")
    new = house.judged(second, "a", "k", "j", "i")
    assert {key: (one.unprovable, one.total) for key, one in old.items()} == {"k": (None, 0), "j": (None, 0)}
    assert {key: (one.unprovable, one.total) for key, one in new.items()} == {"k": (None, 0), "i": (None, 0)}
    house.second.journal.delete_partition(("k", "a", 0), 10**18)
    house.journal.journal.delete_partition(("j", "a", 0), 10**18)
    assert house.judged(house.process, "a", "j")["j"].total == 1
    assert house.judged(second, "a", "k")["k"].total == 1


def test_a_history_shows_what_is_of_the_other_topic_and_a_sample_does_not_read_it() -> None:
    house = given_recreated()
    house.go("in bulk")
    basis, _ = read_basis(house.process, house.log, house.positions)
    history = read_history(basis, house.log, FoundInMemory(house.journal), Entity("a", "k"))
    assert [step.standing for step in history.steps] == [
        MessageFate.APPLIED,
        MessageFate.APPLIED,
        MessageFate.LEFT_OUT,
    ]
    assert history.judged == "as the log says"
    assert [file.topic for file in files_of(house.log.manifest, basis)] == ["a", "b", "b"]


def test_a_journal_that_dies_before_it_is_registered_is_registered_by_the_next_run(kill_at) -> None:
    house = given_recreated()
    kill_at(FaultPoint.REGISTER_ENROLLED)
    with pytest.raises(Killed):
        house.deliver_recreated(namespaces="^a$")
    assert house.positions.load("second") is None
    assert house.deliver_recreated(namespaces="^a$").position == 7
    assert house.positions.load("second").starts == {"a": TopicStart(1, 4, "a-1")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("writes", range(0, 12))
def test_a_journal_that_dies_while_it_leaves_something_out_ends_as_one_that_does_not(
    way: str, writes: int
) -> None:
    house = given_recreated()
    house.actions.publish_topics(a="k:A2", b="k:D2 k:A4")
    house.killed(way, writes)
    house.go(WAYS[writes % 3])
    assert (house.position(house.process), house.gate(house.process)) == (10, None)
    assert house.seen("b", "k") == {"k": [3, 4]}
    assert house.seen("a", "k", "j", "i") == {"k": [1, 2], "j": [1], "i": None}
    assert house.positions.left_out("journal")["a"].messages == 3
