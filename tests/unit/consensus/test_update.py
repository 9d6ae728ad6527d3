"""The one read-decide-commit loop: what it repeats, what it does not, and what is left where it gives up."""

import pytest
from tests.support.consensus import RacingConsensus
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ABSENT, Change, Consensus, ObjectKey, ObjectKind, Snapshot, Undecided
from tidemark.consensus.update import Patience, ReadAgain, retry_outpaced, update
from tidemark.errors import TidemarkError

pytestmark = pytest.mark.unit

COUNTER = ObjectKey(ObjectKind.LOG, "orders")


class Busy(TidemarkError):
    """No try is left."""


def counted(snapshot: Snapshot) -> int:
    return int(snapshot.rows.get("count", "0"))


def add_one(consensus: Consensus, **further) -> int:
    """The new count; each call adds one, however often it has to decide."""

    def decide(snapshot: Snapshot) -> tuple[Change, int]:
        after = counted(snapshot) + 1
        return Change({"count": str(after)}), after

    return update(consensus, COUNTER, ["count"], decide, **further)


def test_a_change_is_committed_and_the_answer_returned():
    consensus = MemoryConsensus()
    assert [add_one(consensus), add_one(consensus)] == [1, 2]
    assert consensus.whole(COUNTER) == Snapshot(2, {"count": "2"})


def test_no_change_commits_nothing():
    consensus = MemoryConsensus()
    assert update(consensus, COUNTER, ["count"], lambda found: (None, found.version)) == ABSENT
    assert consensus.whole(COUNTER).version == ABSENT


def test_an_empty_change_still_makes_a_version():
    consensus = MemoryConsensus()
    update(consensus, COUNTER, [], lambda _: (Change(), None))
    assert consensus.whole(COUNTER).version == 1


def test_a_refusal_leaves_the_object_as_it_was():
    consensus = MemoryConsensus()

    def refuse(snapshot: Snapshot) -> tuple[Change, None]:
        raise Busy("no")

    with pytest.raises(Busy):
        update(consensus, COUNTER, ["count"], refuse)
    assert consensus.whole(COUNTER).version == ABSENT


def test_only_the_named_rows_are_read():
    consensus = MemoryConsensus()
    consensus.commit(COUNTER, ABSENT, Change({"count": "1", "other": "x"}))
    assert update(consensus, COUNTER, ["count"], lambda found: (None, dict(found.rows))) == {"count": "1"}


def test_without_names_all_rows_are_read():
    consensus = MemoryConsensus()
    consensus.commit(COUNTER, ABSENT, Change({"count": "1", "other": "x"}))
    found = update(consensus, COUNTER, None, lambda found: (None, dict(found.rows)))
    assert found == {"count": "1", "other": "x"}


def test_a_faster_process_is_read_and_decided_on_again():
    consensus = RacingConsensus()
    consensus.before_next_commit = lambda: add_one(consensus)
    assert add_one(consensus) == 2
    assert consensus.whole(COUNTER) == Snapshot(2, {"count": "2"})


def test_what_a_faster_process_did_may_leave_nothing_to_do():
    consensus = RacingConsensus()
    create = {"count": "1"}
    consensus.before_next_commit = lambda: consensus.commit(COUNTER, ABSENT, Change(create))
    changed = update(
        consensus,
        COUNTER,
        ["count"],
        lambda found: (None, False) if found.rows else (Change(create), True),
    )
    assert changed is False
    assert consensus.whole(COUNTER).version == 1


def always_outpaced(consensus: RacingConsensus) -> None:
    def step_in() -> None:
        consensus.commit(COUNTER, consensus.whole(COUNTER).version, Change({"other": "x"}))
        consensus.before_next_commit = step_in

    consensus.before_next_commit = step_in


def test_patience_ends_with_the_caller_s_error_and_nothing_changed():
    consensus, waits = RacingConsensus(), []
    always_outpaced(consensus)
    with pytest.raises(Busy) as ended:
        add_one(consensus, patience=Patience(3, lambda: Busy("too many"), waits.append))
    assert waits == [1, 2]
    assert ended.value.__suppress_context__
    assert "count" not in consensus.whole(COUNTER).rows


def test_one_try_of_patience_is_one_commit():
    consensus = RacingConsensus()
    consensus.before_next_commit = lambda: add_one(consensus)
    with pytest.raises(Busy):
        add_one(consensus, patience=Patience(1, lambda: Busy("too many")))
    assert consensus.whole(COUNTER).rows["count"] == "1"


def test_what_is_known_saves_the_first_read_and_no_other():
    reads = iter(["newer"])
    seen = []

    def attempt(what: str) -> str:
        seen.append(what)
        if what == "known":
            raise ReadAgain
        return what

    assert retry_outpaced(lambda: next(reads), attempt, known="known") == "newer"
    assert seen == ["known", "newer"]


def test_a_read_that_refuses_ends_the_loop():
    consensus = RacingConsensus()
    consensus.before_next_commit = lambda: add_one(consensus)

    def gone() -> Snapshot:
        raise Busy("it is not there any more")

    def attempt(snapshot: Snapshot) -> None:
        consensus.commit(COUNTER, snapshot.version, Change())

    with pytest.raises(Busy) as refusal:
        retry_outpaced(gone, attempt, known=Snapshot(ABSENT, {}))
    assert refusal.value.__context__ is None


# Answers that are lost


@pytest.mark.parametrize("fault", list(Fault))
def test_a_commit_of_unknown_outcome_is_not_repeated(fault: Fault):
    consensus = FlakyConsensus(MemoryConsensus())
    consensus.arm(fault)
    with pytest.raises(Undecided):
        add_one(consensus)
    consensus.land()
    assert len(consensus.arrivals) == (0 if fault is Fault.REQUEST_LOST else 1)


@pytest.mark.parametrize(
    ("fault", "count"), [(Fault.REQUEST_LOST, 1), (Fault.ANSWER_LOST, 2), (Fault.LATE, 2)]
)
def test_the_repeated_step_begins_with_what_is_there(fault: Fault, count: int):
    """A late request arrives before the second commit, which is outpaced by it and decides again."""
    consensus = FlakyConsensus(MemoryConsensus())
    consensus.arm(fault)
    with pytest.raises(Undecided):
        add_one(consensus)
    assert add_one(consensus) == count
    assert consensus.whole(COUNTER) == Snapshot(count, {"count": str(count)})


def test_a_decision_that_looks_at_what_is_there_is_idempotent_when_its_answer_is_lost():
    consensus = FlakyConsensus(MemoryConsensus())
    consensus.arm(Fault.ANSWER_LOST)

    def create(snapshot: Snapshot) -> tuple[Change | None, bool]:
        return (None, False) if snapshot.rows else (Change({"count": "1"}), True)

    with pytest.raises(Undecided):
        update(consensus, COUNTER, ["count"], create)
    assert update(consensus, COUNTER, ["count"], create) is False
    assert consensus.whole(COUNTER) == Snapshot(1, {"count": "1"})
