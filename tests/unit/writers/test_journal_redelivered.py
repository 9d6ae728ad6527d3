"""Item 20: a dead letter is applied to a journal after all, or the refusal says why and what helps."""

import pytest
from tests.support.faults import Killed
from tests.support.journal_samples import ActionLog, JournalWorld, given_actions
from tests.support.memory_journal import dies_after, fails_after

from tidemark.delivery.dead_letters.listing import Fate, ListedLetter
from tidemark.delivery.dead_letters.redelivery import NotRedelivered, Redelivery
from tidemark.delivery.operator.action_plan import ActionPlan, NotPossible

pytestmark = pytest.mark.unit


def given_letter(history: str, id_: int) -> JournalWorld:
    """Everything is delivered but one message, which was not understood then and is now."""
    log = ActionLog()
    log.publish(history)
    house = JournalWorld(log)
    house.go("in bulk")
    house.acknowledge(house.started(), id_, untried=False)
    house.go("singly")
    (path,) = log.batches
    log.batches[path] = given_actions(log.bindings[0], history.replace("!", ""))
    return house


def plan(house: JournalWorld, id_: int, fate: object = lambda done: None) -> ActionPlan:
    letter = ListedLetter("orders", "journal", id_, Fate.DEAD, None)
    return Redelivery(house.positions, house.log, house.clock).plan(house.started(fate), letter)


def redeliver(house: JournalWorld, id_: int, fate: object = lambda done: None) -> None:
    plan(house, id_, fate).execute(house.deed("redeliver"))


def numbers(house: JournalWorld, key: str) -> list[int] | None:
    return house.journal.of("orders").read(key, correlate=True)


def test_what_no_message_of_its_entity_followed_is_applied():
    house = given_letter("A1 j:A1 j:A2! A2", 2)
    assert numbers(house, "j") == [1]
    redeliver(house, 2)
    assert (numbers(house, "j"), numbers(house, "k")) == ([1, 2], [1, 2])


def test_an_entity_may_begin_with_it():
    house = given_letter("A1 j:A1! A2", 1)
    redeliver(house, 1)
    assert numbers(house, "j") == [1]


def test_it_counts_as_delivered_from_then_on():
    house = given_letter("A1 j:A1! A2", 1)
    redeliver(house, 1)
    assert house.positions.acknowledged("journal") == frozenset()
    assert house.positions.redelivered("journal")[1].in_place
    assert [deed.what for deed in house.positions.deeds("journal")] == ["acknowledge", "redeliver"]


def test_it_is_as_if_it_had_never_been_let_pass():
    house, log = given_letter("A1 j:A1! A2", 1), ActionLog()
    redeliver(house, 1)
    log.publish("A1 j:A1 A2")
    other = JournalWorld(log)
    other.go("in bulk")
    assert house.told("k", "j") == other.told("k", "j")


def test_delivering_everything_again_changes_nothing():
    house = given_letter("A1 j:A1! A2", 1)
    redeliver(house, 1)
    before = house.told("k", "j")
    house.rewind("journal", -1)
    house.go("in bulk")
    assert (house.told("k", "j"), house.position(house.process)) == (before, 2)


@pytest.mark.parametrize("follower", ["j:A2", "j:D1", "j:P"])
def test_what_its_entity_got_since_forbids_it_and_points_to_a_rebuild(follower):
    house = given_letter(f"A1 j:A1! {follower}", 1)
    with pytest.raises(NotPossible, match=r"id 2 of the same entity was applied after it\. Rebuild with a"):
        plan(house, 1)


def test_what_compaction_may_have_removed_forbids_it():
    house = given_letter("A1 j:A1! A2", 1)
    house.actions.compact(3, ())
    with pytest.raises(NotPossible, match="compaction may have removed what came after it"):
        plan(house, 1)


def test_what_is_still_not_understood_is_refused():
    log = ActionLog()
    log.publish("A1 j:A1! A2")
    house = JournalWorld(log)
    house.go("in bulk")
    house.acknowledge(house.started(), 1)
    house.go("singly")
    with pytest.raises(NotPossible, match="it still cannot be understood"):
        plan(house, 1)


def test_what_is_no_action_is_nothing_to_write():
    house = given_letter("A1 j:A1! A2", 1)
    (path,) = house.actions.batches
    house.actions.batches[path] = given_actions(house.actions.bindings[0], "A1 N A2")
    with pytest.raises(NotPossible, match="there is nothing to write"):
        plan(house, 1)


def test_rows_that_the_acknowledgement_removed_stay_hidden_and_the_head_promises_nothing():
    """The tombstone has the write time of the row and wins: readers must not be told of a row they miss."""
    log = ActionLog()
    log.publish("A1 j:A1 j:A2 A2")
    house = JournalWorld(log)
    house.register(house.process)
    house.forward(house.process, -1)
    house.acknowledge(house.started(), 0)  # untried
    house.acknowledge(house.started(), 1)
    house.acknowledge(house.started(), 2)
    house.go("in bulk")
    before = house.told("k", "j")
    with pytest.raises(NotRedelivered, match="stay hidden behind the tombstones of the acknowledgement"):
        redeliver(house, 2)
    assert house.told("k", "j") == before
    assert house.positions.acknowledged("journal") == {0, 1, 2}


@pytest.mark.parametrize("writes", range(3))
def test_an_attempt_that_died_is_finished_by_the_next(writes):
    house = given_letter("A1 j:A1 j:A2! A2", 2)
    try:
        redeliver(house, 2, dies_after(writes))
    except Killed:
        house.clock.now += 120_000_000
        redeliver(house, 2)
    assert numbers(house, "j") == [1, 2]


def test_a_target_that_fails_leaves_it_dead():
    house = given_letter("A1 j:A1 j:A2! A2", 2)
    with pytest.raises(NotRedelivered, match="no answer"):
        redeliver(house, 2, fails_after(0))
    assert (numbers(house, "j"), house.positions.acknowledged("journal")) == ([1], {2})


def test_it_may_be_let_pass_again_after_a_rewind():
    house = given_letter("A1 j:A1! A2", 1)
    redeliver(house, 1)
    house.journal.__init__()  # type: ignore[misc]
    house.rewind("journal", -1)
    house.acknowledge(house.started(), 0)
    house.acknowledge(house.started(), 1)
    assert house.positions.acknowledged("journal") == {0, 1}
