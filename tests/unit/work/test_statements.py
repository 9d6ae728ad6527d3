"""The statements (S) and decisions (D) of the contract that no other file here has under its number.

Statements about files, index blocks and datagrams of the original have no counterpart: 17, 46, 62.
"""

from dataclasses import replace

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores
from tests.support.work_samples import E0, HOUR_LIMIT, at, given_packet, given_running, with_request

from tidemark.work.errors import ClaimLost
from tidemark.work.model.buckets import Bucket, BucketState, Period, bucket_of, next_state
from tidemark.work.model.decide import Claim, Fail, Notice, decide
from tidemark.work.model.entry import Priority, Status
from tidemark.work.model.merge import merge
from tidemark.work.model.rules import is_expired, is_lapsed, larger_expiry
from tidemark.work.queue.dead_letters import dead_letters
from tidemark.work.queue.listing import live_entries, next_look

pytestmark = pytest.mark.unit


@pytest.fixture
def house() -> WorkWorld:
    return WorkWorld(memory_stores(), given_declaration(max_timeouts=3, history="7d"))


def given(**keys: object) -> WorkWorld:
    return WorkWorld(memory_stores(), given_declaration(**keys))


# The row


def test_S9_the_start_is_that_of_the_claim(house):
    house.insert("k")
    assert house.stored("k").start is None
    house.clock.to("10:05")
    house.claim()
    assert house.stored("k").start == MORNING + 300_000


def test_S14_a_claim_changes_nothing_of_what_was_asked_for(house):
    house.insert("k", "rev7", priority=20)
    before = house.stored("k").request
    house.claim()
    assert house.stored("k").request == before


def test_S15_a_replacement_is_one_row_or_the_other(house):
    house.insert("k", "rev7")
    version = house.parts.entries.read("k").version
    house.insert("k", "rev8", priority=10)
    assert house.parts.entries.read("k").version == version + 1


def test_S16_what_is_done_is_not_seen_any_more(house):
    house.insert("k")
    house.journal.done(*house.claim())
    registered = house.parts.registry.read()
    assert list(live_entries(house.parts, registered, house.clock())) == []
    assert house.journal.get("k") is None


# The order


def test_S20_S21_priority_then_date(house):
    house.insert("late", priority=20, process=MORNING + 2)
    house.insert("early", priority=20, process=MORNING + 1)
    house.insert("urgent", priority=0, process=MORNING + 3)
    house.clock.to("10:00:01")
    assert house.claim_keys(limit=3) == ["urgent", "early", "late"]


def test_S22_D2_18_what_is_not_due_holds_no_entry_back(house):
    house.insert("urgent", priority=0, process=MORNING + 60_000)
    house.insert("slow", priority=255)
    assert house.claim_keys(limit=5) == ["slow"]


def test_S23_the_named_priorities():
    named = {name: value for name, value in vars(Priority).items() if name.isupper()}
    assert named == {
        "NOW": 0,
        "IMPORTANT": 10,
        "NEW_PAGE": 20,
        "RESET": 50,
        "UPDATES": 180,
        "SLOW": 200,
        "REVIEW": 230,
        "TIME_ALLOWS": 255,
    }


def test_S24_D2_17_slow_entries_wait_for_a_pass_without_others():
    house = given(slow_from=200)
    house.insert("slow", priority=200)
    house.insert("other", priority=199)
    assert [house.claim_keys(limit=5), house.claim_keys(limit=5)] == [["other"], ["slow"]]


def test_D2_17_without_the_setting_there_is_no_slow_lane(house):
    house.insert("slow", priority=255)
    house.insert("other", priority=0)
    assert house.claim_keys(limit=5) == ["other", "slow"]


# The key


def test_S25_S29_two_inserts_of_a_key_are_one_waiting_entry(house):
    house.insert("k", 1)
    house.insert("k", 2)
    assert house.claim_keys(limit=5) == ["k"]


def test_S27_a_merge_leaves_status_and_start(house):
    house.insert("k")
    (claimed,) = house.claim()
    house.journal.release(claimed)
    house.clock.to("10:01")
    house.insert("k", 2)
    assert (house.stored("k").status, house.stored("k").start) == (Status.WAITING, MORNING)


def test_S28_D2_2_a_running_entry_is_never_merged_into(house):
    house.insert("k", 1)
    (claimed,) = house.claim()
    house.insert("k", 2)
    assert replace(house.stored("k"), successor=None) == claimed.entry


def test_S30_D2_11_the_name_of_an_entry_comes_from_its_key_alone(house):
    house.insert("a", "same")
    house.insert("b", "same")
    assert sorted(house.claim_keys(limit=5)) == ["a", "b"]


def test_D2_4_never_is_larger_than_any_date():
    assert [larger_expiry(0, 5), larger_expiry(5, 0), larger_expiry(4, 5)] == [0, 0, 5]


def test_D2_12_a_key_of_a_sealed_bucket_goes_to_the_current_one(house):
    house.insert("k", 1)
    house.clock.to("11:30")
    house.sweep()
    house.insert("k", 2)
    entry = house.stored("k")
    assert (entry.hint.bucket, entry.request.inserted) == ("2026-11-17T11", MORNING)


def test_D2_13_an_old_payload_is_given_out_with_its_schema():
    old = replace(E0, request=replace(E0.request, schema=1))
    newer = replace(given_packet("10:00:06", "0", 180, "10:00:10", "v2"), schema=2)
    assert merge(old, newer, at("10:00:06"), HOUR_LIMIT).entry.request.schema == 2
    assert decide(old, Claim("a", "w"), at("10:00:10"), HOUR_LIMIT).entry.request.schema == 1


def test_D2_20_an_expired_entry_is_no_entry_for_an_insert():
    entry = merge(E0, given_packet("12:00:01", "0", 180, "12:00:01", "x"), at("12:00:01"), HOUR_LIMIT).entry
    assert (entry.request.inserted, entry.timeouts) == (at("12:00:01"), 0)


# Claims and timeouts


def test_S34_no_worker_has_to_be_woken_up(house):
    house.insert("k", process=MORNING + 1_000)
    house.clock.to("10:00:01")
    assert house.claim_keys() == ["k"]


def test_S35_what_is_expired_not_due_or_held_is_not_given_out(house):
    house.insert("expired", expires=MORNING + 1_000)
    house.insert("not due", process=MORNING + 60_000)
    house.insert("held", priority=0)
    assert house.claim_keys() == ["held"]
    house.clock.to("10:00:02")
    assert house.claim_keys(limit=5) == []


def test_S36_done_of_what_is_gone_is_a_success(house):
    house.insert("k")
    (claimed,) = house.claim()
    house.journal.cancel("k")
    assert house.journal.done(claimed) == "gone"


def test_S37_S38_D2_5_the_limit_is_a_setting_and_taken_literally():
    rules = replace(HOUR_LIMIT, time_limit=10_000)
    held = given_running("10:00:10")
    assert [is_lapsed(held, at(f"10:00:{s}"), rules) for s in ("20", "20.999", "21")] == [False, False, True]


def test_S39_each_refresh_restarts_the_limit(house):
    house.insert("k")
    (claimed,) = house.claim()
    for minutes in (45, 90, 135):
        house.clock.now = MORNING + minutes * 60_000
        claimed = house.journal.refresh(claimed)
    assert house.journal.done(claimed) == "done"


def test_S41_D2_6_no_removal_without_a_dead_letter(house):
    house.insert("k")
    for _ in range(3):
        assert house.claim_keys() == ["k"]
        house.clock.now += 3_601_000
    house.sweep()
    assert house.stored("k") is None
    assert [kept.letter.key for kept in dead_letters(house.parts, house.clock())] == ["k"]


def test_S43_a_failure_is_not_a_timeout():
    after = decide(given_running(), Fail("a", "x"), at("10:01"), HOUR_LIMIT).entry
    assert (after.timeouts, after.failures) == (2, 1)


def test_D2_10_who_claimed_a_version_keeps_its_payload(house):
    house.insert("k", "rev7")
    (claimed,) = house.claim()
    house.insert("k", "rev8")
    assert house.journal.refresh(claimed).request.payload == '{"data":"rev7"}'


def test_D2_15_the_change_itself_counts(house):
    house.insert("k")
    house.claim()
    house.clock.to("11:00:01")
    assert house.claim_keys("w2") == ["k"]
    assert house.sweep().lapsed == 0
    assert house.stored("k").timeouts == 1


def test_D2_25_every_entry_of_a_batch_has_a_claim_of_its_own(house):
    for key in "abc":
        house.insert(key)
    claimed = house.claim(limit=3)
    assert len({one.token for one in claimed}) == 3
    house.journal.done(claimed[0])
    assert sum(house.stored(key) is not None for key in "abc") == 2


def test_D2_30_a_key_that_is_asked_for_again_and_again_is_still_counted():
    entry = given_running(timeouts=4, total_timeouts=7)
    packet = given_packet("10:20", "0", 10, "10:20", "rev8")
    entry = merge(entry, packet, at("10:20"), HOUR_LIMIT).entry
    after = decide(entry, Notice(), at("11:00:11"), HOUR_LIMIT).entry
    assert (after.timeouts, after.total_timeouts) == (0, 8)


def test_I3_claimed_or_expired_and_not_both(house):
    house.insert("k", expires=MORNING + 60_000)
    house.clock.to("10:01:00.999")
    (claimed,) = house.claim()
    house.clock.to("10:01:01")
    with pytest.raises(ClaimLost):
        house.journal.fail(claimed, "x")
    assert house.sweep().expired == 1
    assert house.stored("k") is None


# Expiry


def test_S44_D2_23_expiry_is_compared_in_whole_seconds():
    request = with_request(E0, expires=at("11:00:00.400")).request
    assert [is_expired(request, at(f"11:00:0{s}")) for s in ("0.900", "1")] == [False, True]


def test_S45_who_waits_is_told_when_something_expires(house):
    house.insert("k", expires=MORNING + 60_000)
    house.journal.snooze(*house.claim(), MORNING + 7_200_000)
    assert next_look(house.parts, house.parts.registry.read(), house.clock()) == MORNING + 61_000


# Buckets and places


def test_S48_an_ended_bucket_gets_no_hint(house):
    house.insert("a")
    house.clock.to("11:00")
    house.sweep()
    house.insert("b", process=MORNING)
    assert house.stored("b").hint.bucket == "2026-11-17T11"


def test_S48_a_clock_that_is_behind_puts_its_hint_into_the_next_bucket(house):
    house.insert("a")
    house.clock.to("11:00")
    house.sweep()
    house.restart()
    house.clock.to("10:59:58")
    house.insert("b")
    assert house.stored("b").hint.bucket == "2026-11-17T11"
    house.clock.to("11:00:01")
    assert sorted(house.claim_keys(limit=2)) == ["a", "b"]


def test_S49_only_an_empty_bucket_is_disposed_of():
    full = Bucket("2026-11-17T09", BucketState.SEALED)
    assert next_state(full, Period.HOUR, at("23:00"), 60_000, False) is BucketState.SEALED


def test_S50_S51_I5_an_insert_beside_a_disposal_is_found(house):
    house.insert("old")
    house.journal.done(*house.claim())
    house.clock.to("13:00")
    house.insert("new")
    house.sweep()
    house.restart()
    assert house.claim_keys(limit=5) == ["new"]


def test_S52_the_stores_of_hints_have_no_way_to_remove_one(house):
    assert not [name for name in dir(house.parts.due) if name.startswith(("delete", "remove"))]


def test_S53_S54_how_many_copies_there_are_is_declared():
    declared = given_declaration(replication={"class": "NetworkTopologyStrategy", "dc1": 3})
    assert declared.replication.factors == {"dc1": 3}


def test_S56_a_claim_moves_the_entry_in_no_order_of_waiting_ones(house):
    house.insert("k", priority=20)
    waiting = house.stored("k").hint
    house.claim()
    assert house.parts.due.holds(waiting), "the hint stays; the entry does not name it any more"


def test_S57_journals_in_one_table_do_not_meet(house):
    other = WorkWorld(house.stores, given_declaration(), house.clock)
    house.insert("k", 1)
    other.insert("k", 2)
    assert [one.request.payload for one in other.claim(limit=5)] == ['{"data":2}']


def test_S58_an_entry_is_found_by_its_key_without_any_search(house):
    house.insert("k", 1)
    assert house.journal.get("k").key == "k"


def test_S59_the_next_date_costs_no_look_at_entries(house):
    house.insert("far", process=MORNING + 7_200_000)
    house.insert("near", process=MORNING + 60_000)
    assert next_look(house.parts, house.parts.registry.read(), house.clock()) == MORNING + 60_000


def test_S61_a_declaration_is_all_there_is(house):
    assert house.parts.registry.read().declared == house.declared


def test_D2_8_a_date_before_the_insertion_is_raised():
    entry = merge(None, given_packet("10:00", "0", 1, "09:00", "x"), at("10:00"), HOUR_LIMIT).entry
    assert entry.request.process == at("10:00")


def test_D2_22_status_is_stored_short_and_said_long():
    assert [(status.name, status.value) for status in Status] == [("WAITING", "W"), ("PROCESSING", "P")]


def test_D2_26_an_entry_of_the_far_future_holds_no_bucket_of_today(house):
    house.insert("far", process=MORNING + 30 * 86_400_000)
    assert house.stored("far").hint.bucket == bucket_of(Period.HOUR, MORNING + 30 * 86_400_000)


def test_D2_27_an_insert_that_returned_is_there_for_every_worker(house):
    house.insert("k")
    assert [one.key for one in house.another().claim("w")] == ["k"]


def test_D2_29_the_bucket_before_the_current_one_is_kept():
    empty = Bucket("2026-11-17T09", BucketState.EMPTY)
    states = [next_state(empty, Period.HOUR, at(now), 60_000, True) for now in ("10:59:59", "11:00")]
    assert states == [BucketState.EMPTY, BucketState.DISPOSED]
