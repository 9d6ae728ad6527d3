"""What a sweep does over long times, and what it leaves for those who come later."""

from typing import Any

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import Stores, WorkWorld, given_declaration, memory_stores

from tidemark.faults import FaultPoint
from tidemark.work.model.decide import Snooze, decide
from tidemark.work.queue.due_queue import AGAIN_AFTER, LOOK_BACK, LOOKS_UNTIL_ALL, Lanes
from tidemark.work.queue.journal import WorkJournal
from tidemark.work.store.due import MemoryDue

pytestmark = pytest.mark.unit

DAY = 86_400_000


@pytest.fixture
def house() -> WorkWorld:
    return WorkWorld(memory_stores(), given_declaration())


def test_a_hint_that_cassandra_would_let_go_is_written_anew(house):
    house.insert("k")
    old = house.stored("k").hint
    house.clock.now += 15 * DAY
    assert house.sweep("k").rearmed == 0
    house.clock.now += 1
    assert house.sweep("k").rearmed == 1
    assert house.stored("k").hint.id != old.id
    assert house.claim_keys() == ["k"]


def test_a_disposed_bucket_is_taken_off_the_list_in_the_end(house):
    house.insert("k")
    house.journal.done(*house.claim())
    house.clock.now += 3 * 3_600_000
    assert house.sweep().buckets["2026-11-17T10"] == ["sealed", "empty", "disposed"]
    house.clock.now += 34 * DAY
    house.sweep()
    assert "2026-11-17T10" in house.parts.registry.read().buckets
    house.clock.now += DAY
    house.sweep()
    assert "2026-11-17T10" not in house.parts.registry.read().buckets


class CountingDue(MemoryDue):
    """Remembers which hints were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def page(self, *values: Any) -> Any:
        found = super().page(*values)
        self.read += [hint.key for hint in found]
        return found


def given_counting() -> tuple[WorkWorld, CountingDue]:
    due, memory = CountingDue(), memory_stores()
    stores = Stores(memory.entries, memory.registry, lambda name: due, memory.archive)
    return WorkWorld(stores, given_declaration(bucket="day")), due


def test_who_comes_later_does_not_read_what_is_settled():
    house, due = given_counting()
    for number in range(20):
        house.insert(f"old{number}")
    for claimed in house.claim(limit=20):
        house.journal.done(claimed)
    house.clock.to("12:00")
    house.sweep()
    house.insert("new")
    house.restart()
    due.read.clear()
    assert house.claim_keys() == ["new"]
    assert set(due.read) == {"new"}


def test_a_process_reads_what_it_has_settled_only_until_it_is_sure():
    house, due = given_counting()
    journal = WorkJournal(house.parts, Lanes(house.declared, due, 0, 0), registry_for=0)
    for key in ("older", "old", "last"):
        house.insert(key)
        house.clock.now += 1_000
    for claimed in journal.claim("w", 3):
        journal.done(claimed)
    for seconds, again in ((50, {"older", "old", "last"}), (20, {"last"})):
        house.clock.now += seconds * 1_000
        for _ in range(LOOKS_UNTIL_ALL):
            journal.claim("w")
        due.read.clear()
        journal.claim("w")
        assert set(due.read) == again


@pytest.mark.parametrize(("late", "looks"), [(LOOK_BACK, 1), (LOOK_BACK + 1, LOOKS_UNTIL_ALL)])
def test_a_hint_that_turns_up_late_is_found(late: int, looks: int):
    house, _ = given_counting()
    journal = WorkJournal(house.parts, Lanes(house.declared, house.parts.due, 0, 0), registry_for=0)
    house.clock.now = MORNING + late
    house.insert("first")
    assert [one.key for one in journal.claim("w")] == ["first"]
    house.clock.now = MORNING
    house.insert("late")
    house.clock.now = MORNING + late
    found = [one.key for _ in range(looks) for one in journal.claim("w")]
    assert found == ["late"]


def test_a_hint_that_is_seen_before_its_entry_is_looked_at_again(house, at_point):
    other, seen_early = house.another(), []
    at_point(FaultPoint.WORK_HINTED, lambda: seen_early.extend(other.claim("w")))
    house.insert("k")
    house.clock.now += AGAIN_AFTER
    assert (seen_early, [one.key for one in other.claim("w")]) == ([], ["k"])


def test_more_entries_than_a_page_come_out_in_order():
    house, _ = given_counting()
    house.clock.to("09:00")
    for number in range(40):
        house.insert(f"k{number:02}", process=MORNING + number)
    house.clock.to("10:00:01")
    keys = [key for _ in range(5) for key in house.claim_keys(limit=8)]
    assert keys == [f"k{number:02}" for number in range(40)]


def test_an_entry_that_is_too_far_away_holds_up_no_other(house):
    for key in ("far", "near"):
        house.insert(key)
    far = next(one for one in house.claim(limit=2) if one.key == "far")
    house.journal.changing.change(
        "far", lambda entry, now: decide(entry, Snooze(far.token, 2**60), now, house.declared.rules)
    )
    house.clock.to("11:00:01")
    assert house.sweep().lapsed == 1
    assert house.claim_keys(limit=5) == ["near"]


def test_what_a_sweep_finds_behind_the_mark_of_a_process_is_looked_at():
    house, due = given_counting()
    journal = WorkJournal(house.parts, Lanes(house.declared, due, 0, 0), registry_for=0)
    house.clock.to("10:05")
    house.insert("first")
    journal.done(*journal.claim("w"))
    house.clock.to("10:10")
    for _ in range(2 * LOOKS_UNTIL_ALL):
        journal.claim("w")
    house.clock.to("10:03")
    house.insert("late")
    house.clock.to("10:10")
    assert [journal.claim("w") for _ in range(LOOKS_UNTIL_ALL)] == [[]] * LOOKS_UNTIL_ALL
    house.sweep()
    assert [one.key for one in journal.claim("w")] == ["late"]
