"""What a work journal does for those who ask for work and those who do it, on whatever stores it is given.

A subclass named ``Test…`` gives the fixture ``stores``; every test has a journal of its own name.
"""

from typing import Any

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_stores import given_hint
from tests.support.contracts.work_world import Stores, WorkWorld, at_once, given_declaration

from tidemark.work.errors import BadRequest, ClaimLost
from tidemark.work.model.entry import DeadEntry, Ending
from tidemark.work.queue.dead_letters import dead_letters
from tidemark.work.queue.listing import figures, history, next_look
from tidemark.work.store.registry import Pause


def letters_of(house: WorkWorld) -> list[DeadEntry]:
    return [kept.letter for kept in dead_letters(house.parts, house.clock())]


class JournalContract:
    """What a journal does, worked examples 3.2 to 3.6 among it."""

    @pytest.fixture
    def house(self, stores: Stores) -> WorkWorld:
        return WorkWorld(stores, given_declaration(max_timeouts=3, history="7d"))

    def given(self, stores: Stores, **keys: Any) -> WorkWorld:
        return WorkWorld(stores, given_declaration(**keys))

    def test_M11_two_keys_of_one_hash_are_two_entries(self, stores: Stores):
        house = WorkWorld(stores, given_declaration(), hashed=lambda key: "00" * 16)
        assert [house.insert("page/42", 1), house.insert("page/43", 2)] == ["inserted", "inserted"]
        assert sorted(house.claim_keys(limit=5)) == ["page/42", "page/43"]

    def test_3_2_claim_and_timeout(self, house: WorkWorld):
        clock, journal = house.clock, house.journal
        house.insert("k", "rev7", process=MORNING + 10_000)
        clock.to("10:00:09")
        assert house.claim("w1") == []
        assert next_look(house.parts, house.parts.registry.read(), clock()) == MORNING + 10_000
        clock.to("10:00:10")
        (a,) = house.claim("w1")
        assert house.claim("w2") == []
        clock.to("10:40:10")
        a = journal.refresh(a)
        clock.to("11:00:20")
        assert house.claim("w2") == [], "its first lease is over, the refreshed one is not"
        clock.to("11:40:10")
        house.sweep()
        assert not house.stored("k").is_waiting
        clock.to("11:40:11")
        assert [house.sweep().lapsed, house.sweep().lapsed] == [1, 0]
        (b,) = house.claim("w2")
        assert b.entry.timeouts == 1
        clock.to("11:45:00")
        with pytest.raises(ClaimLost):
            journal.done(a)
        assert house.stored("k") == b.entry
        clock.to("12:40:12")
        (c,) = house.claim("w3")
        assert c.entry.timeouts == 2
        clock.to("13:40:13")
        assert house.sweep().dead == 1
        assert house.stored("k") is None
        (letter,) = letters_of(house)
        assert (letter.key, letter.request.payload, letter.timeouts, letter.owner) == (
            "k",
            '{"data":"rev7"}',
            3,
            "w3",
        )

    def test_3_2_done_twice(self, house: WorkWorld):
        house.insert("k")
        (claimed,) = house.claim()
        assert [house.journal.done(claimed), house.journal.done(claimed)] == ["done", "gone"]
        assert house.stored("k") is None
        assert [run.ending for run in history(house.parts, house.clock(), 1)] == [Ending.DONE]

    def test_3_2_done_with_a_successor_gives_that_out(self, house: WorkWorld):
        house.insert("k", "rev7")
        (first,) = house.claim()
        assert house.insert("k", "rev8") == "queued"
        assert house.claim() == []
        house.journal.done(first)
        (second,) = house.claim()
        assert second.request.payload == '{"data":"rev8"}'

    def test_S36_done_twice_leaves_what_waited_behind_alone(self, house: WorkWorld):
        house.insert("k", "rev7")
        (first,) = house.claim()
        house.insert("k", "rev8")
        assert [house.journal.done(first), house.journal.done(first)] == ["done", "gone"]
        (second,) = house.claim()
        assert house.journal.done(first) == "gone"
        assert house.stored("k").token == second.token
        with pytest.raises(ClaimLost):
            house.journal.refresh(first)
        assert house.journal.done(second) == "done"

    def test_3_3_what_has_expired_is_not_seen(self, house: WorkWorld):
        house.insert("k", expires=MORNING + 3_600_000)
        house.clock.to("11:00:00")
        assert house.journal.get("k") is not None
        assert figures(house.parts, house.clock()).waiting == 1
        house.clock.to("11:00:01")
        assert house.journal.get("k") is None
        assert house.claim() == []
        assert figures(house.parts, house.clock()).waiting == 0
        assert house.insert("k") == "inserted"

    def test_3_3_what_expires_is_removed_by_the_next_look(self, house: WorkWorld):
        house.insert("k", expires=MORNING + 60_000)
        house.journal.snooze(*house.claim(), MORNING + 7_200_000)
        house.clock.to("10:01:01")
        assert house.sweep().expired == 1
        assert house.stored("k") is None

    def test_3_3_expired_while_processing(self, house: WorkWorld):
        house.insert("k", expires=MORNING + 60_000)
        (claimed,) = house.claim()
        house.clock.to("10:01:01")
        with pytest.raises(ClaimLost):
            house.journal.refresh(claimed)
        assert house.journal.done(claimed) == "gone"

    def test_3_4_order_and_the_slow_lane(self, stores: Stores):
        house = self.given(stores, slow_from=200)
        house.clock.to("07:00")
        for key, priority, clock in [
            ("A", 20, -60_000),
            ("B", 20, -120_000),
            ("C", 0, 300_000),
            ("D", 200, -3_600_000),
            ("E", 180, -7_200_000),
        ]:
            house.insert(key, priority=priority, process=MORNING + clock)
        house.clock.to("10:00")
        assert house.claim_keys(limit=10) == ["B", "A", "E"]
        assert house.claim_keys(limit=10) == ["D"]
        house.clock.to("10:05")
        assert house.claim_keys(limit=10) == ["C"]

    def test_3_4_one_at_a_time_is_the_same_order(self, house: WorkWorld):
        for number in range(7):
            house.insert(f"k{number}", priority=number % 3, process=MORNING + number)
        house.clock.to("10:01")
        keys = [key for _ in range(7) for key in house.claim_keys()]
        assert keys == ["k0", "k3", "k6", "k1", "k4", "k2", "k5"]

    def test_I1_a_merge_and_a_claim_at_once_lose_no_payload(self, house: WorkWorld):
        for number in range(6):
            house.insert(f"k{number}", "rev1")
            got: list[Any] = []
            at_once(
                lambda got=got: got.extend(house.claim("w1")),
                lambda number=number: house.insert(f"k{number}", "rev2"),
            )
            (claimed,) = got or house.claim("w1")
            if claimed.request.payload == '{"data":"rev1"}':
                assert house.stored(f"k{number}").successor.payload == '{"data":"rev2"}'
            house.journal.done(claimed)
            for left in house.claim("w1"):
                house.journal.done(left)

    def test_I2_two_merges_at_once_are_one_entry(self, house: WorkWorld):
        at_once(
            lambda: house.insert("k", "a", priority=10, process=MORNING + 500),
            lambda: house.insert("k", "b", priority=20, process=MORNING + 900),
        )
        request = house.stored("k").request
        assert (request.priority, request.process, request.payload) == (10, MORNING + 900, '{"data":"b"}')

    def test_S33_of_many_claimers_one_gets_an_entry(self, house: WorkWorld):
        for number in range(8):
            house.insert(f"k{number}")
        got: list[str] = []
        journals = [house.another() for _ in range(4)]
        at_once(
            *(
                lambda journal=journal: got.extend(one.key for one in journal.claim("w", 8))
                for journal in journals
            )
        )
        assert sorted(got) == [f"k{number}" for number in range(8)]

    def test_what_others_have_done_holds_no_worker_up(self, house: WorkWorld):
        other = house.another()
        for number in range(10):
            house.insert(f"k{number}")
        for claimed in house.claim(limit=10):
            house.journal.done(claimed)
        house.insert("last", process=house.clock())
        assert [one.key for one in other.claim("w2", 5)] == ["last"]

    def test_hints_that_were_never_named_hold_no_worker_up(self, house: WorkWorld):
        for number in range(10):
            house.parts.due.put(given_hint(MORNING, f"orphan{number}"))
        house.insert("k", process=MORNING + 1)
        house.clock.to("10:00:01")
        assert [key for _ in range(4) for key in house.claim_keys()] == ["k"]

    def test_I4_done_or_lapse(self, house: WorkWorld):
        house.insert("k")
        (claimed,) = house.claim()
        house.clock.to("11:00:01")
        with pytest.raises(ClaimLost):
            house.journal.done(claimed)
        house.sweep()
        assert house.stored("k").timeouts == 1

    def test_S31_a_hundred_inserts_are_one_execution(self, house: WorkWorld):
        for number in range(100):
            house.insert("k", number, process=MORNING + 60_000, inserted=MORNING + number)
        house.clock.to("10:01:00")
        (claimed,) = house.claim(limit=10)
        assert claimed.request.payload == '{"data":99}'
        house.journal.done(claimed)
        assert house.claim() == []

    def test_a_failed_entry_comes_back_later_and_dies_in_the_end(self, stores: Stores):
        house = self.given(stores, max_failures=2, backoff={"first": "10s", "most": "10s"})
        house.insert("k")
        (claimed,) = house.claim()
        assert house.journal.fail(claimed, "no route") == "failed"
        assert house.claim() == []
        house.clock.to("10:00:10")
        (claimed,) = house.claim()
        assert (claimed.entry.failures, claimed.entry.error) == (1, "no route")
        assert house.journal.fail(claimed, "again") == "dead"
        (letter,) = letters_of(house)
        assert (letter.error, letter.failures) == ("again", 2)

    def test_what_was_asked_for_again_meanwhile_is_no_dead_letter(self, stores: Stores):
        house = self.given(stores, max_failures=1)
        house.insert("k", "rev7")
        (claimed,) = house.claim()
        house.insert("k", "rev8")
        assert house.journal.fail(claimed, "no route") == "failed"
        assert house.stored("k").request.payload == '{"data":"rev8"}'
        assert letters_of(house) == []

    def test_what_was_cancelled_meanwhile_is_no_dead_letter(self, stores: Stores):
        house = self.given(stores, max_failures=1)
        house.insert("k")
        (claimed,) = house.claim()
        house.journal.cancel("k")
        with pytest.raises(ClaimLost):
            house.journal.fail(claimed, "no route")
        assert letters_of(house) == []

    def test_a_dead_letter_of_a_long_claim_is_shown(self, stores: Stores):
        house = self.given(stores, time_limit="5d", dead_letters="2d", max_timeouts=1)
        house.insert("k")
        house.claim()
        house.clock.now += 5 * 86_400_000 + 1_000
        assert house.sweep("k").dead == 1
        assert [letter.key for letter in letters_of(house)] == ["k"]

    def test_snoozed_released_and_cancelled(self, house: WorkWorld):
        house.insert("k")
        (claimed,) = house.claim()
        house.journal.snooze(claimed, MORNING + 30_000)
        assert house.claim() == []
        house.clock.to("10:00:30")
        (claimed,) = house.claim()
        assert house.journal.release(claimed) == "released"
        (claimed,) = house.claim()
        assert house.journal.cancel("k") == "cancelled"
        with pytest.raises(ClaimLost):
            house.journal.refresh(claimed)
        assert house.stored("k") is None

    def test_a_paused_journal_gives_nothing_out(self, house: WorkWorld):
        registry = house.parts.registry
        house.insert("k")
        registry.pause(Pause("ann", "maintenance", MORNING))
        assert house.claim() == []
        assert house.insert("k2") == "inserted"
        registry.pause(None)
        assert sorted(house.claim_keys(limit=5)) == ["k", "k2"]

    def test_shards_keep_every_entry(self, stores: Stores):
        house = self.given(stores, shards=4)
        for number in range(12):
            house.insert(f"k{number}")
        assert sorted(house.claim_keys(limit=20)) == sorted(f"k{number}" for number in range(12))

    def test_I7_a_claim_is_asked_for_again_by_its_request(self, house: WorkWorld):
        house.insert("k")
        (first,) = house.journal.claim("w1", 1, "request-1")
        house.restart()
        (again,) = house.journal.claim("w1", 1, "request-1")
        assert (again.key, again.token) == (first.key, first.token)

    @pytest.mark.parametrize("limit", [0, -1, 1001, True, 1.5])
    def test_a_limit_that_cannot_be_meant_is_refused(self, house: WorkWorld, limit: Any):
        with pytest.raises(BadRequest, match="Nothing was changed"):
            house.journal.claim("w1", limit)
