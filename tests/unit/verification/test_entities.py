"""A few entities by name, while their writer may be at work."""

from dataclasses import replace

import pytest
from tests.support.found_in_memory import basis, case, given_delivered, verdicts
from tests.support.journal_samples import TOPIC, ActionLog, JournalWorld

from tidemark.delivery.state.positions import ShapeChanged
from tidemark.verification.errors import NoSuchEntity, NothingDelivered, TopicNotDelivered
from tidemark.verification.journal.entities import verify_case
from tidemark.verification.tally import VerdictTally

pytestmark = pytest.mark.unit


def test_entities_are_looked_for_in_every_topic() -> None:
    found = verify_case(case(given_delivered("A1 j:A1")), ["k", "j", "k"])
    assert (found.entities, found.same, found.pointers, found.is_clean) == (2, 2, 1, True)


def test_who_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(NoSuchEntity, match="'x'"):
        verify_case(case(given_delivered("A1")), ["k", "x"])


def test_a_topic_that_is_not_known_is_refused() -> None:
    with pytest.raises(TopicNotDelivered, match="there is: orders"):
        verify_case(case(given_delivered("A1")), ["k"], topic="refunds")


def test_a_writer_that_never_ran_has_nothing_to_verify() -> None:
    with pytest.raises(NothingDelivered):
        basis(JournalWorld(ActionLog()))


def test_a_writer_that_would_make_other_tables_is_not_verified() -> None:
    house = given_delivered("A1")
    house.settings = {"segment_size": 7}
    house.started()
    with pytest.raises(ShapeChanged):
        basis(house)


def test_topics_that_the_writer_does_not_take_are_not_its_business() -> None:
    house = given_delivered("A1", namespaces="refunds")
    assert (basis(house).topics, basis(house).pointers) == (frozenset(), {})


def test_what_is_newer_than_what_was_known_at_first_is_looked_at_again() -> None:
    # Given: a verification that began before a delivery and has read the tables after it.
    house = given_delivered("A1 j:A1")
    before = basis(house)
    for history in ("A2", "j:A2", "A3"):
        house.actions.publish(history)
    house.go("in bulk")
    house.journal.journal.delete_partition(("j", TOPIC, 0), 10**18)
    tally = VerdictTally()
    for verdict in verdicts(house, "k", "j", known=before).values():
        tally.note(verdict)
    assert tally.topics[TOPIC].different == 2

    # When: it comes to its end.
    found = case(house).conclude(before, tally, 0.0)

    # Then: only what is wrong by now is called wrong, and no pointer is too far.
    assert {one.key for one in found.differences} == {"j"}
    assert (found.same, found.different, found.pointers_wrong) == (1, 1, 0)


def test_what_another_run_delivered_since_the_log_was_opened_is_neither_wrong_nor_too_far() -> None:
    # Given: a run that opened the log before another run published and delivered more.
    house = given_delivered("A1 j:A1")
    old = case(house)
    house.actions.publish("A2")
    house.go("in bulk")

    # When: it verifies, and the writer's state does not change any more.
    found = verify_case(old, ["k", "j"])

    # Then
    assert (found.is_clean, found.position, found.same, found.pointers_wrong) == (True, 2, 2, 0)


@pytest.mark.parametrize("writes", range(1, 4))
def test_what_is_being_delivered_from_a_newer_log_is_not_wrong(writes: int) -> None:
    # Given: another run has the lease and has written some of a binding that this one's log does not have.
    house = given_delivered("A1")
    old = house.log
    house.actions.publish("A2")
    house.killed("in bulk", writes)

    # Then
    assert verify_case(replace(case(house), log=old), ["k"]).is_clean


def test_what_is_wrong_while_no_run_works_is_looked_at_once() -> None:
    house = given_delivered("A1")
    house.journal.journal.delete_partition(("k", TOPIC, 0), 10**18)
    (verdict,) = verdicts(house).values()
    tally = VerdictTally()
    tally.note(verdict)
    assert case(house).conclude(basis(house), tally, 0.0).different == 1
