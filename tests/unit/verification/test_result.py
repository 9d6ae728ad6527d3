"""Verdicts counted, and what comes of them for people and programs."""

import json

import msgspec
import pytest
from tests.support.found_in_memory import given_delivered, verified
from tests.support.journal_samples import TOPIC, ActionLog, JournalWorld
from tests.support.verification_samples import diff, missing, side

from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.verification.diff import Diff
from tidemark.verification.journal.judge import EntityVerdict
from tidemark.verification.journal.provable import Unprovable
from tidemark.verification.tally import Counts, Unproven, VerdictTally

pytestmark = pytest.mark.unit


def different(key: str, *numbers: int, topic: str = "orders") -> EntityVerdict:
    return EntityVerdict(topic, key, tuple(missing(key, n, topic) for n in numbers), len(numbers))


def counted(*verdicts: EntityVerdict | None, most: int = 3) -> VerdictTally:
    tally = VerdictTally(most)
    for verdict in verdicts:
        tally.note(verdict)
    return tally


SAME = EntityVerdict("orders", "same")
UNPROVABLE = EntityVerdict("refunds", "old", unprovable=Unprovable.BEFORE_THE_LOG)


def test_verdicts_are_counted_by_topic() -> None:
    tally = counted(SAME, None, different("k", 1, 2), UNPROVABLE)
    assert tally.topics == {"orders": Counts(same=1, different=1), "refunds": Counts(not_provable=1)}
    assert tally.unproven == [Unproven("refunds", "old", Unprovable.BEFORE_THE_LOG)]
    assert tally.total == 2


def test_the_sum_does_not_depend_on_who_was_first() -> None:
    one, other = counted(different("b", 1, 2)), counted(different("a", 1, 2), SAME, UNPROVABLE)
    assert VerdictTally.sum([one, other], 3) == VerdictTally.sum([other, one], 3)
    assert [(each.key, each.seq_nr) for each in VerdictTally.sum([one, other], 3).differences] == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]


def test_a_tally_travels() -> None:
    tally = counted(different("k", 1), UNPROVABLE)
    assert msgspec.json.decode(msgspec.json.encode(tally), type=VerdictTally) == tally


def test_what_was_judged_again_takes_the_place_of_what_was_told() -> None:
    tally = counted(different("a", 1, 2), different("b", 1), SAME, most=10)
    again = tally.replaced(
        [EntityVerdict("orders", "a"), different("b", 7)], [("orders", "a"), ("orders", "b")]
    )
    assert again.topics == {"orders": Counts(same=2, different=1)}
    assert ([one.seq_nr for one in again.differences], again.total) == ([7], 1)


def test_a_verification_in_one_sentence_and_as_json() -> None:
    house = given_delivered("A1 j:A1")
    house.journal.journal.delete_partition(("k", TOPIC, 0), 10**18)
    found = verified(house, "k", "j")
    assert found.summary == "2 entities: 1 as the log says, 1 different; 1 pointer; up to id 1"
    shown = json.loads(json.dumps(found.to_dict()))
    assert (shown["clean"], shown["entities"], shown["same"], shown["different"]) == (False, 2, 1, 1)
    assert shown["differences"][0]["said"] == "orders: k: event 1 is missing"
    assert shown["pointers"] == {"checked": 1, "wrong": 0}


def test_what_is_not_provable_is_named_and_not_wrong() -> None:
    house = JournalWorld(ActionLog(begins_at=3))
    house.actions.publish("A7")
    house.go("in bulk")
    found = verified(house)
    assert (found.is_clean, found.entities) == (True, 1)
    assert found.to_dict()["not_provable"] == {"began before the log": 1}
    assert found.to_dict()["unproven"] == [{"topic": "orders", "key": "k", "reason": "began before the log"}]


# Two keyspaces


def test_readers_may_be_switched_to_what_is_the_same() -> None:
    found = diff(side("a"), side("b"))
    assert (found.is_same, found.is_safe, found.obstacles) == (True, True, ())


def test_pointers_that_are_further_are_safe_though_not_the_same() -> None:
    found = diff(side("a"), side("b", 7))
    assert (found.is_same, found.is_safe) == (False, True)


@pytest.mark.parametrize(
    ("found", "obstacle"),
    [
        (diff(side("a"), side("b"), missing("k", 1)), "1 entity is different"),
        (diff(side("a"), side("b", 4)), "orders/0: b is at offset 4, a at 5"),
        (diff(side("a"), side("b", None)), "orders/0: b has no pointer, a at 5"),
        (
            diff(side("a"), side("b", position=8)),
            "the writers are not at the same id: w_a at 9, w_b at 8",
        ),
        (diff(side("a"), side("b", gate="no answer")), "the gate of w_b is closed: no answer"),
        (
            diff(side("a"), side("b"), moved=("w_b",)),
            "w_b was at work meanwhile: compare again when it rests",
        ),
    ],
)
def test_what_stands_in_the_way_of_a_switch(found: Diff, obstacle: str) -> None:
    assert found.obstacles == (obstacle,)
    assert not found.is_safe


def test_a_diff_as_json() -> None:
    shown = json.loads(json.dumps(diff(side("a"), side("b", 4), missing("k", 1)).to_dict()))
    assert (shown["same"], shown["safe"], len(shown["obstacles"])) == (False, False, 2)
    assert shown["pointers"] == [{"topic": "orders", "partition": 0, "old": 5, "new": 4}]
    assert shown["differences"][0]["said"] == "orders: k: event 1 is only in a"


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (Difference(DifferenceKind.HEAD_MISSING, "t", "k", expected=3), "only a has it, at event 3"),
        (Difference(DifferenceKind.HEAD_EXTRA, "t", "k", found=3), "only b has it, at event 3"),
        (
            Difference(DifferenceKind.HEAD_DIFFERS, "t", "k", columns=("seq_nr",), expected=3, found=4),
            "seq_nr of the head is 3 in a and 4 in b",
        ),
        (Difference(DifferenceKind.ROW_EXTRA, "t", "k", seq_nr=3), "event 3 is only in b"),
        (
            Difference(DifferenceKind.ROW_DIFFERS, "t", "k", seq_nr=3, columns=("tags", "offset")),
            "event 3 is not the same: tags, offset",
        ),
    ],
)
def test_a_comparison_takes_no_side(difference: Difference, said: str) -> None:
    assert difference.between("a", "b") == said
