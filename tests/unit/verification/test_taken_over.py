"""Tables that another replicator has begun: what is provable of them, and what is offered else (item 17)."""

import pytest
from tests.support.found_in_memory import FoundInMemory, basis, verdicts, verified
from tests.support.journal_samples import KEY, TOPIC, ActionLog, JournalWorld

from tidemark.journal.difference import DifferenceKind
from tidemark.journal.segments import head_segment
from tidemark.verification.journal.messages import files_of
from tidemark.verification.journal.provable import Ground, Unprovable
from tidemark.verification.rebuild import find_gap
from tidemark.verification.reconcile import StillDifferent
from tidemark.verification.reconciliation import Reconciliation
from tidemark.verification.sample import judge_sample
from tidemark.verification.selection import Entity

pytestmark = pytest.mark.unit

LATER = 10**18


def given_taken_over(theirs: str, *ours: str) -> JournalWorld:
    """Tables by another replicator up to an offset, and from there on by ours, whose log begins there."""
    other = JournalWorld(ActionLog())
    other.actions.publish(theirs)
    other.go("in bulk")
    house = JournalWorld(ActionLog(begins_at=len(theirs.split())))
    house.journal = other.journal
    house.actions.publish("", "N")  # so that our write times are later than theirs
    for history in ours:
        house.actions.publish(history)
    house.go("in bulk")
    assert house.gate(house.process) is None
    return house


def test_a_head_made_by_a_delete_before_the_log_is_not_called_wrong_when_event_1_comes_later() -> None:
    house = given_taken_over("D3", "A1 A2")
    assert house.journal.of(TOPIC).head(KEY).delete_to == 3
    (verdict,) = verdicts(house).values()
    assert (verdict.unprovable, verdict.total) == (Unprovable.BEFORE_THE_LOG, 0)
    assert verified(house).is_clean


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param("D3", "P A1 A2", id="a purge in the log"),
        pytest.param("D3", "A1 P A1", id="a purge in the log, later"),
        pytest.param("A1 P", "A1 A2", id="a purge before the log left no head"),
        pytest.param("j:A1", "A1 A2", id="nothing of it before the log"),
    ],
)
def test_what_can_have_nothing_before_the_log_is_proved_and_damage_to_it_is_found(
    theirs: str, ours: str
) -> None:
    house = given_taken_over(theirs, ours)
    (verdict,) = verdicts(house).values()
    assert (verdict.unprovable, verdict.total) == (None, 0)

    house.journal.journal.delete_partition((KEY, TOPIC, 0), LATER)
    (verdict,) = verdicts(house).values()
    assert verdict.differences[0].kind is DifferenceKind.ROW_MISSING


def test_a_head_that_is_gone_is_missing_wherever_the_entity_began() -> None:
    house = given_taken_over("D3", "A1 A2")
    house.journal.metajournal.delete_partition((TOPIC, head_segment(KEY)), LATER)
    (verdict,) = verdicts(house).values()
    assert [one.kind for one in verdict.differences] == [DifferenceKind.HEAD_MISSING]


def test_a_sample_does_not_call_wrong_what_an_older_file_it_does_not_read_explains() -> None:
    house = JournalWorld(ActionLog())
    house.actions.publish("D3 j:D3 j:P")
    house.actions.publish("A1 j:A1 i:A1")
    house.go("in bulk")
    known = basis(house)
    oldest, *newest = files_of(house.log.manifest, known)
    sample = [Entity(TOPIC, key) for key in "kji"]
    tally = judge_sample(known, house.log, FoundInMemory(house.journal), newest, oldest.last_id, sample)
    assert (tally.total, dict(tally.unprovable)) == (0, {Unprovable.BEFORE_THE_LOG: 1})
    assert tally.topics[TOPIC].same == 2


# What is offered where the log cannot rebuild


def given_damaged(house: JournalWorld) -> JournalWorld:
    house.journal.journal.delete_partition(("i", TOPIC, 0), LATER)
    return house


def test_a_finding_says_that_a_log_which_is_not_whole_cannot_rebuild_the_tables() -> None:
    found = verified(given_damaged(given_taken_over("D3", "A1 i:A1")), "k", "i")
    assert found.gap == "it begins at offset 1 of orders/0, it begins at offset 1 of orders/1"
    assert found.to_dict()["rebuild"] == {"possible": False, "because": found.gap}
    record = Reconciliation("orders", "journal", 2, found.summary, found.to_dict())
    assert "i: event 1 is missing. The log is not whole (it begins at offset 1 of orders/0" in record.reason


def test_a_finding_of_a_whole_log_says_nothing_of_that() -> None:
    house = JournalWorld(ActionLog())
    house.actions.publish("A1 i:A1")
    house.go("in bulk")
    found = verified(given_damaged(house), "k", "i")
    assert (found.gap, found.to_dict()["rebuild"]) == ("", {"possible": True, "because": None})
    record = Reconciliation("orders", "journal", 1, found.summary, found.to_dict())
    assert record.reason.endswith("i: event 1 is missing.")


def test_the_refusal_to_open_a_gate_names_what_is_possible() -> None:
    whole, gap = StillDifferent("p", "w", "k is wrong."), "it begins at offset 5 of orders/0"
    assert "rebuild them with a writer of another keyspace and `start: earliest`" in str(whole)
    said = str(StillDifferent("p", "w", "k is wrong.", gap))
    assert f"the log is not whole ({gap}), so a keyspace rebuilt from it would be without" in said
    assert "start: earliest" not in said
    for way in ("tidemark resume p w", "take over again", "tidemark gate open p w --execute --reason"):
        assert way in said


@pytest.mark.parametrize(
    ("ground", "unclear_below", "gap"),
    [
        (Ground({("o", 0): 0}, {}, frozenset()), 0, ""),
        (Ground({("o", 0): 0}, {("o", 0): 9}, frozenset()), 0, "offsets of o/0 below 9 were lost"),
        (Ground({("o", 0): 0}, {}, frozenset({("o", 0)})), 0, "the offsets of o/0 began anew"),
        (
            Ground({("o", 0): 0}, {}, frozenset()),
            7,
            "another policy than `journal` has compacted it below id 7",
        ),
        (
            Ground({("o", p): 2 for p in range(5)}, {}, frozenset()),
            0,
            "it begins at offset 2 of o/0, it begins at offset 2 of o/1, it begins at offset 2 of o/2, "
            "and 2 more",
        ),
    ],
    ids=["whole", "lost", "begun anew", "compacted", "many"],
)
def test_what_a_log_does_not_have(ground: Ground, unclear_below: int, gap: str) -> None:
    assert find_gap(ground, unclear_below) == gap
