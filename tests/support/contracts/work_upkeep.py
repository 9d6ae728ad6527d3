"""What keeps a work journal in order: buckets, lost hints, lapses, what is forgotten, changed declarations.

A subclass named ``Test…`` gives the fixture ``stores``; every test has a journal of its own name.
"""

from typing import Any

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import Stores, WorkWorld, at_once, given_declaration

from tidemark.consensus.objects import ABSENT
from tidemark.work.errors import ClaimLost, NotTheSameJournal, UnknownJournal
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.queue.listing import figures, live_entries
from tidemark.work.store.entries import GONE_FOR
from tidemark.work.store.registry import Registry


class UpkeepContract:
    """Worked example 3.5 among it."""

    @pytest.fixture
    def house(self, stores: Stores) -> WorkWorld:
        return WorkWorld(stores, given_declaration(max_timeouts=3, history="7d"))

    def test_3_5_buckets_come_and_go_whole(self, house: WorkWorld):
        clock, journal = house.clock, house.journal

        def states() -> dict[str, str]:
            buckets = house.parts.registry.read().buckets
            return {bucket.id[-2:]: bucket.state.value for bucket in buckets.values()}

        clock.to("09:30")
        for key, process in [("A", -600_000), ("B", -300_000), ("C", 14_400_000)]:
            house.insert(key, process=MORNING + process)
        assert states() == {"09": "open", "14": "open"}
        clock.to("09:56")
        a, b = house.claim(limit=2)
        clock.to("10:00")
        house.sweep()
        assert states()["09"] == "sealed"
        journal.done(a)
        house.insert("D", process=MORNING + 3_000_000)
        clock.to("10:20")
        assert house.insert("C", process=MORNING + 14_400_000) == "merged"
        clock.to("10:45")
        house.sweep()
        assert states() == {"09": "empty", "10": "open", "14": "open"}
        clock.to("11:00")
        house.sweep()
        assert states() == {"09": "disposed", "10": "sealed", "11": "open", "14": "open"}
        assert list(house.parts.due.priorities("2026-11-17T09", 0)) == []
        clock.to("14:00")
        assert house.claim_keys(limit=5) == ["B", "D", "C"]
        with pytest.raises(ClaimLost):
            journal.done(b)

    def test_3_5_a_bucket_with_an_entry_in_it_is_kept(self, house: WorkWorld):
        house.insert("overdue")
        house.clock.to("15:00")
        house.sweep()
        assert [bucket.state.value for bucket in house.parts.registry.read().buckets.values()] == ["sealed"]
        assert house.claim_keys() == ["overdue"]

    def test_I6_a_lapse_noticed_by_many_counts_once(self, house: WorkWorld):
        house.insert("k", process=MORNING)
        house.claim()
        house.clock.to("11:00:01")
        at_once(*[house.sweep] * 4)
        assert house.stored("k").timeouts == 1

    def test_a_lost_hint_is_a_delay_and_not_a_loss(self, house: WorkWorld):
        house.insert("k")
        house.parts.due.dispose("2026-11-17T10", [0], MORNING)
        house.clock.to("10:00:01")
        house.restart()
        assert house.claim() == []
        assert house.sweep("k").rearmed == 1
        assert house.claim_keys() == ["k"]

    def test_a_hint_that_is_there_is_not_written_again(self, house: WorkWorld):
        house.insert("k")
        assert house.sweep("k").rearmed == 0

    def test_a_hint_below_its_lane_s_mark_is_replaced(self, house: WorkWorld):
        house.insert("first")
        house.clock.to("10:05")
        house.journal.done(*house.claim())
        house.sweep()
        house.clock.to("10:03")
        house.insert("late")
        house.clock.to("10:05")
        house.restart()
        assert house.claim() == [], "everything before 10:04 counts as settled"
        assert house.sweep("late").rearmed == 1
        assert house.claim_keys() == ["late"]
        assert house.sweep("late").rearmed == 0

    def test_long_after_it_is_done_nothing_is_left_of_a_key(self, house: WorkWorld):
        house.insert("k")
        (first,) = house.claim()
        house.journal.done(first)
        house.clock.now += GONE_FOR
        assert house.sweep(gone=["k"]).forgotten == 0
        house.clock.now += 1
        assert house.sweep(gone=["k"], execute=False).forgotten == 1
        assert house.parts.entries.read("k").version == 3
        assert [house.sweep(gone=["k"]).forgotten, house.sweep(gone=["k"]).forgotten] == [1, 0]
        assert house.parts.entries.read("k").version == ABSENT

    def test_a_key_that_was_forgotten_begins_anew_and_old_claims_do_not_count(self, house: WorkWorld):
        house.insert("k", "old")
        (old,) = house.claim()
        house.journal.cancel("k")
        house.clock.now += GONE_FOR + 1
        assert house.sweep(gone=["k"]).forgotten == 1
        house.insert("k", "new")
        (new,) = house.claim()
        assert new.stored.version == old.stored.version
        with pytest.raises(ClaimLost):
            house.journal.done(old)
        assert house.journal.done(new) == "done"

    def test_a_key_in_use_is_not_forgotten(self, house: WorkWorld):
        house.insert("k")
        house.journal.done(*house.claim())
        house.clock.now += GONE_FOR + 1
        house.insert("k", "again")
        assert house.sweep(gone=["k", "never used"]).forgotten == 0
        (claimed,) = house.claim()
        assert claimed.request.payload == '{"data":"again"}'

    def test_a_plan_changes_nothing(self, house: WorkWorld):
        house.insert("k")
        house.claim()
        house.clock.to("13:00")
        before = house.stored("k")
        planned = house.sweep("k", execute=False)
        assert (planned.lapsed, house.stored("k")) == (1, before)
        assert house.parts.registry.read().buckets["2026-11-17T10"].state.value == "open"

    def test_figures(self, house: WorkWorld):
        house.insert("a", priority=10)
        house.insert("b", process=MORNING + 60_000)
        house.claim()
        house.insert("a")
        found = figures(house.parts, house.clock())
        assert (found.waiting, found.due, found.processing, found.behind) == (1, 0, 1, 1)
        assert (found.by_priority, found.next_look) == ({10: 1, 180: 1}, MORNING + 60_000)
        listed = live_entries(house.parts, house.parts.registry.read(), house.clock())
        assert [entry.key for entry in listed] == ["a", "b"]

    def test_an_unknown_journal_is_refused(self, house: WorkWorld):
        with pytest.raises(UnknownJournal):
            Registry(house.stores.registry, f"{house.declared.name}x").read()

    def test_S18_a_changed_payload_needs_a_version_and_touches_no_entry(self, house: WorkWorld):
        house.insert("k", "old")
        columns = {"other": "int"}
        with pytest.raises(NotTheSameJournal):
            house.parts.registry.create(redeclared(house.declared, payload=columns))
        newer = redeclared(house.declared, payload=columns, version=2)
        assert house.parts.registry.create(newer)
        assert not house.parts.registry.create(newer)
        (claimed,) = house.claim()
        assert (claimed.request.payload, claimed.request.schema) == ('{"data":"old"}', 1)

    @pytest.mark.parametrize("change", [{"key": {"other": "text"}}, {"bucket": "day"}, {"shards": 2}])
    def test_what_entries_depend_on_cannot_change(self, house: WorkWorld, change: dict[str, Any]):
        with pytest.raises(NotTheSameJournal) as refusal:
            house.parts.registry.create(redeclared(house.declared, **change))
        assert refusal.value.what == next(iter(change))


def redeclared(declared: WorkDeclaration, **changes: Any) -> WorkDeclaration:
    return WorkDeclaration.model_validate({**declared.model_dump(mode="json"), **changes})
