"""Every kind of damage is found and named; what hides nothing from a reader is no damage."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.support.found_in_memory import given_delivered, verdicts, verified
from tests.support.journal_damage import (
    HEAD,
    LATER,
    with_changed_row,
    with_extra_row,
    with_old_head,
    with_pointer_behind,
    with_pointer_too_far,
    with_row_of_another_incarnation,
    without_head,
    without_pointer,
    without_row,
)
from tests.support.journal_samples import KEY, TOPIC, ActionLog, JournalWorld

from tidemark.delivery.state.handed_back import TablesHandedBack, closing
from tidemark.delivery.state.writer_state import Cause, HandedBack
from tidemark.journal.difference import DifferenceKind
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.verification.journal.provable import Unprovable

pytestmark = pytest.mark.unit


KINDS = DifferenceKind
DAMAGES = [
    (without_row, [KINDS.ROW_MISSING], "orders: k: event 2 is missing"),
    (with_changed_row, [KINDS.ROW_DIFFERS], "orders: k: event 2 was changed: payload_txt"),
    (with_row_of_another_incarnation, [KINDS.ROW_MISSING], "but hidden: of another incarnation"),
    (with_extra_row, [KINDS.ROW_EXTRA], "orders: k: event 9 is there and should not be"),
    (with_old_head, [KINDS.HEAD_DIFFERS], "seq_nr of the head is 2 instead of 3 (the head is too old"),
    (without_head, [KINDS.HEAD_MISSING], "orders: k: the head is missing; it should be at event 3"),
    (with_pointer_too_far, [KINDS.POINTER_TOO_FAR], "orders/0: pointer2 is too far: 99 instead of 1"),
    (with_pointer_behind, [KINDS.POINTER_BEHIND], "orders/0: pointer2 is behind: 0 instead of 1"),
    (without_pointer, [KINDS.POINTER_MISSING], "orders/0: pointer2 has no offset; it should be 1"),
]


@pytest.mark.parametrize(("damage", "kinds", "said"), DAMAGES, ids=[one[0].__name__ for one in DAMAGES])
def test_damage_is_found_and_named(
    damage: Callable[[JournalWorld], None], kinds: list[DifferenceKind], said: str
) -> None:
    house = given_delivered("A1,2", "A3")
    assert verified(house).is_clean
    damage(house)
    found = verified(house)
    assert [one.kind for one in found.differences] == kinds
    assert said in str(found.differences[0])


def test_an_entity_that_was_purged_must_not_be_there() -> None:
    house = given_delivered("A1,2", "P")
    assert verified(house).same == 1
    cells = {"partition": 0, "offset": 0, "segment_size": 10_000, "seq_nr": 2, "created": 1, "updated": 1}
    house.journal.metajournal.insert(HEAD, (KEY,), cells, LATER)
    assert [one.kind for one in verified(house).differences] == [DifferenceKind.HEAD_EXTRA]


def test_an_entity_that_the_log_does_not_know_must_not_be_there() -> None:
    house = given_delivered("j:A1")
    assert verdicts(house) == {}
    cells = {"partition": 0, "offset": 0, "segment_size": 10_000, "seq_nr": 2, "created": 1, "updated": 1}
    house.journal.metajournal.insert(HEAD, (KEY,), cells, LATER)
    assert [one.kind for one in verified(house).differences] == [DifferenceKind.HEAD_EXTRA]


def test_rows_below_the_deleted_and_of_dead_incarnations_are_no_damage() -> None:
    house = given_delivered("A1,2,3", "D1")
    for segment, seq_nr, whose in ((0, 1, None), (0, 2, "other"), (7, 3, None)):
        cells = {"partition": 0, "offset": 0, "meta_record_id": whose}
        house.journal.journal.insert((KEY, TOPIC, segment), (seq_nr, 99), cells, LATER)
    assert verified(house).is_clean


def test_a_row_at_a_place_that_was_used_twice_is_what_both_left_there() -> None:
    """The same number and the same time: Cassandra keeps one row, with the cells of both."""
    assert verified(given_delivered("A1@5 A1,2@5")).same == 1


def test_what_was_acknowledged_is_left_out() -> None:
    house = given_delivered("A1 A2! A3")
    assert house.gate(house.process) is not None
    house.acknowledge(house.started(), 1)
    house.go("singly")
    found = verified(house)
    assert (found.same, found.is_clean, found.position) == (1, True, 2)


def test_what_was_written_past_a_wall_is_not_judged_yet() -> None:
    """The lowest message that cannot be understood stops the position, not the other partitions."""
    house = JournalWorld(ActionLog())
    house.actions.publish("j:A1", "A1")
    house.actions.publish("j:A2!", "A2")
    house.go("in bulk")
    found = verdicts(house, "j", "k")
    assert (found["j"].unprovable, found["j"].total) == (None, 0)
    assert found["k"].unprovable is Unprovable.UNFINISHED
    assert verified(house, "j", "k").is_clean


def test_what_an_interrupted_delivery_left_is_not_judged() -> None:
    house = given_delivered("A1,2,3")
    house.actions.publish("D2 A4")
    house.killed("in bulk", 1)
    (verdict,) = verdicts(house).values()
    assert verdict.unprovable is Unprovable.UNFINISHED
    house.go("in bulk")
    (verdict,) = verdicts(house).values()
    assert (verdict.unprovable, verdict.total) == (None, 0)


def test_a_loss_takes_the_proof_from_those_who_had_begun() -> None:
    house = given_delivered("A1 j:A1 i:A1", "- - j:P i:A2", "j:A7")
    loss = Loss(LossKind.RETENTION, TOPIC, 0, 3, 5)
    house.actions.losses.append(AcceptedLoss(loss, None, 2, "ann", "known", 0))
    found = {key: one.unprovable for key, one in verdicts(house, *"kji").items()}
    assert found == {"k": Unprovable.OFFSETS_LOST, "j": None, "i": Unprovable.OFFSETS_LOST}


def test_a_message_that_was_never_applied_leaves_its_entity_without_proof() -> None:
    """The tables had it before the pipeline began: its pointer said so, and it was never verified."""
    house = JournalWorld(ActionLog())
    house.actions.publish("A1! A2 j:A1")
    house.journal.point(TOPIC, 0, 1)
    house.go("in bulk")
    found = verdicts(house, "k", "j")
    assert (found["k"].unprovable, found["j"].unprovable) == (Unprovable.NOT_APPLICABLE, None)
    assert "message 0 (partition 0, offset 0)" in found["k"].detail


def given_repartitioned() -> JournalWorld:
    """An entity in two partitions, and a writer whose position was moved past it all the same."""
    house = JournalWorld(ActionLog())
    house.actions.publish("A1 A2", "A3 j:A1")
    house.go("in bulk")
    assert (house.position(house.process), house.gate(house.process) is None) == (1, False)
    return house


def test_an_entity_in_two_partitions_is_a_difference_once_the_writer_is_past_it() -> None:
    house = given_repartitioned()
    house.forward(house.process, 3)
    (verdict,) = verdicts(house).values()
    assert [(one.kind, one.expected, one.found) for one in verdict.differences] == [
        (DifferenceKind.REPARTITIONED, 0, 1)
    ]
    assert "it is in partitions 0 and 1" in str(verdict.differences[0])


def test_an_entity_in_two_partitions_at_which_the_writer_stopped_is_as_it_should_be() -> None:
    (verdict,) = verdicts(given_repartitioned()).values()
    assert (verdict.unprovable, verdict.total) == (None, 0)


def test_an_entity_in_two_partitions_of_which_a_person_chose_one_is_as_it_should_be() -> None:
    house = given_repartitioned()
    house.acknowledge(house.started(), 2)
    house.go("singly")
    found = verified(house, "k", "j")
    assert (found.same, found.is_clean, found.position) == (2, True, 3)


def test_a_history_that_began_before_the_log_is_not_provable() -> None:
    log = ActionLog(begins_at=5)
    house = JournalWorld(log)
    log.publish("A4 j:A1 i:D3 h:P h:A7")
    house.go("in bulk")
    found = {key: one.unprovable for key, one in verdicts(house, *"kjih").items()}
    assert found == {
        "k": Unprovable.BEFORE_THE_LOG,
        "j": None,
        "i": Unprovable.BEFORE_THE_LOG,
        "h": None,
    }


def test_i18_pointers_that_were_taken_over_are_not_too_far_before_the_next_delivery() -> None:
    house = given_delivered("A1 j:A1")
    house.actions.publish("A2")
    house.actions.publish("A3")
    house.journal.point(TOPIC, 0, 3, write_time=10**15)
    assert [str(one) for one in verified(house, "j").differences] != []
    state = house.state(house.process)
    house.positions.commit(replace(state, theirs={(TOPIC, 0): 3}), state.position, None)
    assert verified(house, "j").differences == ()


def test_i18_tables_that_are_another_replicator_s_are_not_judged() -> None:
    house = given_delivered("A1 j:A1")
    state, left = house.state(house.process), HandedBack(house.clock(), "ann", "back to them")
    gate = closing(state, Cause.HAND, left)
    house.positions.commit(replace(state, handed_back=left), state.position, None, gate)
    with pytest.raises(TablesHandedBack):
        verified(house, "k")
