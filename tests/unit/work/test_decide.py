"""Worked example 3.2 and the statements about claims and timeouts (33 to 43), case by case."""

import json
from dataclasses import replace

import pytest
from tests.support.work_samples import E0, HOUR_LIMIT, at, given_running, with_request

from tidemark.work.model.decide import (
    Cancel,
    Claim,
    Done,
    Event,
    Fail,
    Notice,
    Refresh,
    Release,
    Snooze,
    decide,
)
from tidemark.work.model.decision import Decision, Outcome
from tidemark.work.model.entry import DeathReason, Ending, Entry, Request, Status
from tidemark.work.model.rules import Rules, back_off
from tidemark.work.store.entries import body_of, entry_of

pytestmark = pytest.mark.unit

THREE = replace(HOUR_LIMIT, max_timeouts=3)
WAITING = replace(with_request(E0, expires=0), timeouts=0)
SUCCESSOR = Request(at("10:20"), at("10:20"), 0, 10, at("10:20:10"), "rev8", 1)


def running(start: str = "10:00:10", token: str = "a", owner: str = "w1", **changes: object) -> Entry:
    return replace(with_request(given_running(start, token, owner), expires=0), **{"timeouts": 0, **changes})


def told(entry: Entry | None, event: Event, now: str, rules: Rules = THREE) -> Decision:
    return decide(entry, event, at(now), rules)


# 3.2, line by line


def test_3_2_at_10_00_09_it_is_not_due():
    decision = told(WAITING, Claim("a", "w1"), "10:00:09")
    assert (decision.outcome, decision.entry) == (Outcome.NOT_DUE, WAITING)


def test_3_2_at_10_00_10_w1_gets_it():
    decision = told(WAITING, Claim("a", "w1"), "10:00:10")
    assert decision.outcome is Outcome.CLAIMED
    assert decision.entry == running()


def test_3_2_w2_together_with_w1_gets_nothing():
    assert told(running(), Claim("b", "w2"), "10:00:10").outcome is Outcome.HELD


def test_3_2_at_10_40_10_a_refresh_moves_the_start():
    decision = told(running(), Refresh("a"), "10:40:10")
    assert decision.entry == running("10:40:10", claimed=at("10:00:10"))


def test_history_shows_the_whole_run_however_often_it_was_refreshed():
    refreshed = told(running(), Refresh("a"), "10:40:10").entry
    assert told(refreshed, Done("a"), "11:10:00").run.started == at("10:00:10")
    assert told(refreshed, Notice(), "11:40:11").run.started == at("10:00:10")


def test_an_entry_that_was_stored_without_these_fields_is_read():
    old = json.loads(body_of(running()))
    for field in ("claimed", "ended"):
        del old[field]
    read = entry_of(json.dumps(old))
    assert read == running(claimed=None)
    assert told(read, Done("a"), "10:10:00").run.started == at("10:00:10")


def test_3_2_at_11_40_10_exactly_the_limit_is_still_processing():
    assert told(running("10:40:10"), Notice(), "11:40:10").outcome is Outcome.UNCHANGED


def test_3_2_at_11_40_11_it_lapses():
    decision = told(running("10:40:10"), Notice(), "11:40:11")
    assert (decision.outcome, decision.entry.status) == (Outcome.LAPSED, Status.WAITING)
    assert (decision.entry.timeouts, decision.entry.total_timeouts) == (1, 1)


def test_3_2_the_other_who_notices_changes_nothing():
    lapsed = told(running("10:40:10"), Notice(), "11:40:11").entry
    assert told(lapsed, Notice(), "11:40:11") == Decision(lapsed, Outcome.UNCHANGED)


def test_3_2_w2_may_claim_it_at_once():
    claimed = told(running("10:40:10"), Claim("b", "w2"), "11:40:11").entry
    assert (claimed.token, claimed.start, claimed.timeouts) == ("b", at("11:40:11"), 1)


def test_3_2_at_11_45_the_zombie_is_refused():
    held = running("11:40:11", "b", "w2", timeouts=1)
    assert told(held, Done("a"), "11:45") == Decision(held, Outcome.LOST)


def test_3_2_at_12_40_12_the_second_lapse():
    claimed = told(running("11:40:11", "b", "w2", timeouts=1), Claim("c", "w3"), "12:40:12").entry
    assert (claimed.token, claimed.owner, claimed.timeouts) == ("c", "w3", 2)


def test_3_2_at_13_40_13_the_third_lapse_is_a_dead_letter():
    decision = told(running("12:40:12", "c", "w3", timeouts=2), Notice(), "13:40:13")
    assert (decision.outcome, decision.entry) == (Outcome.DEAD, None)
    letter = decision.dead
    assert (letter.key, letter.request.payload, letter.timeouts, letter.owner, letter.reason) == (
        "page/42",
        "rev7",
        3,
        "w3",
        DeathReason.TIMEOUTS,
    )


def test_3_2_at_12_50_done_removes_it():
    decision = told(running("12:40:12", "c", "w3", timeouts=2), Done("c"), "12:50")
    assert (decision.entry, decision.outcome, decision.run.ending) == (None, Outcome.DONE, Ending.DONE)


def test_3_2_done_again_is_a_success_without_effect():
    assert told(None, Done("c"), "12:51") == Decision(None, Outcome.GONE)


def test_3_2_a_lapse_with_a_successor_is_one_merged_entry():
    decision = told(running(timeouts=2, successor=SUCCESSOR), Notice(), "11:00:11")
    after = decision.entry
    assert (after.request.inserted, after.request.expires, after.request.priority) == (at("10:00"), 0, 10)
    assert (after.request.process, after.request.payload) == (at("10:20:10"), "rev8")
    assert (after.timeouts, after.total_timeouts, after.successor) == (0, 1, None)


def test_3_2_done_with_a_successor_makes_that_the_entry():
    after = told(running(timeouts=2, successor=SUCCESSOR), Done("a"), "10:30").entry
    assert (after.request, after.status, after.timeouts, after.token) == (SUCCESSOR, Status.WAITING, 0, None)


# Statements and decisions


@pytest.mark.parametrize("event", [Refresh("a"), Fail("a", "x"), Snooze("a", 0), Release("a"), Done("a")])
def test_D2_14_after_the_limit_the_right_token_is_lost_too(event):
    held = running("10:00:10")
    assert told(held, event, "11:00:11") == Decision(held, Outcome.LOST)


@pytest.mark.parametrize("event", [Refresh("z"), Fail("z", "x"), Snooze("z", 0), Release("z"), Done("z")])
def test_D2_14_another_token_changes_nothing(event):
    assert told(running(), event, "10:01") == Decision(running(), Outcome.LOST)


@pytest.mark.parametrize("event", [Refresh("a"), Fail("a", "x"), Snooze("a", 0), Release("a")])
def test_D2_14_what_is_gone_is_lost_for_all_but_done(event):
    assert told(None, event, "10:01").outcome is Outcome.LOST


def test_S10_the_counters_stop_at_255():
    rules = replace(HOUR_LIMIT, max_timeouts=255)
    many = running(timeouts=200, total_timeouts=255)
    assert told(many, Notice(), "11:00:11", rules).entry.total_timeouts == 255


def test_S40_one_lapse_counts_once_however_long_it_lasted():
    assert told(running(), Notice(), "23:59:59").entry.timeouts == 1


def test_S42_refreshing_does_not_reset_the_counter():
    assert told(running(timeouts=2), Refresh("a"), "10:40").entry.timeouts == 2


def test_D2_16_the_start_stays_as_it_was():
    assert told(running(), Notice(), "11:00:11").entry.start == at("10:00:10")


def test_D2_19_expiring_while_processing_counts_no_timeout():
    held = with_request(running("10:30:00"), expires=at("11:00"))
    decision = told(held, Notice(), "11:00:01")
    assert (decision.entry, decision.outcome, decision.dead) == (None, Outcome.EXPIRED, None)
    assert told(held, Refresh("a"), "11:00:01").outcome is Outcome.LOST
    assert told(held, Done("a"), "11:00:01").outcome is Outcome.GONE


def test_D2_19_a_successor_of_what_expired_may_be_claimed():
    held = with_request(running("10:30:00", successor=SUCCESSOR), expires=at("11:00"))
    claimed = told(held, Claim("b", "w2"), "11:00:01").entry
    assert (claimed.request.payload, claimed.token, claimed.timeouts) == ("rev8", "b", 0)


def test_D2_3_a_successor_waits_for_the_one_before_it():
    assert told(running(successor=SUCCESSOR), Claim("b", "w2"), "10:30").outcome is Outcome.HELD


def test_an_expired_successor_is_forgotten():
    behind = replace(SUCCESSOR, expires=at("10:25"))
    assert told(running(successor=behind), Done("a"), "10:30").entry is None


def test_I7_a_claim_asked_for_again_with_its_token_is_the_same_claim():
    assert told(running(), Claim("a", "w1"), "10:30") == Decision(running(), Outcome.CLAIMED)


# What users of other queues expect


def test_a_failure_waits_longer_each_time():
    decision = told(running(), Fail("a", "no route"), "10:01")
    after = decision.entry
    assert (decision.outcome, after.failures, after.error, after.timeouts) == (
        Outcome.FAILED,
        1,
        "no route",
        0,
    )
    assert at("10:01") + 2_500 <= after.request.process <= at("10:01") + 5_000


def test_the_back_off_doubles_up_to_its_most_and_is_the_same_for_the_same_failure():
    waits = [back_off("k", failures, HOUR_LIMIT) for failures in range(1, 60)]
    assert waits == [back_off("k", failures, HOUR_LIMIT) for failures in range(1, 60)]
    for failures, wait in enumerate(waits, 1):
        longest = min(3_600_000, 5_000 * 2 ** (failures - 1))
        assert longest // 2 <= wait <= longest


def test_the_last_failure_is_a_dead_letter_with_the_error():
    decision = told(running(failures=24), Fail("a", "no route"), "10:01")
    assert (decision.entry, decision.dead.reason, decision.dead.error) == (
        None,
        DeathReason.FAILURES,
        "no route",
    )
    assert (decision.dead.failures, decision.dead.request) == (25, running().request)


def test_a_failure_with_a_successor_is_tried_with_the_new_payload():
    after = told(running(failures=24, successor=SUCCESSOR), Fail("a", "x"), "10:30").entry
    assert (after.request.payload, after.failures) == ("rev8", 0)


def test_a_snooze_uses_no_attempt():
    after = told(running(failures=1, timeouts=1), Snooze("a", at("10:30")), "10:01").entry
    assert (after.request.process, after.failures, after.timeouts) == (at("10:30"), 1, 1)
    assert after.is_waiting


def test_a_released_entry_is_as_before_the_claim():
    after = told(running(), Release("a"), "10:01").entry
    assert replace(after, start=None) == WAITING


@pytest.mark.parametrize("entry", [WAITING, running(), running(successor=SUCCESSOR)])
def test_a_cancelled_entry_is_gone_with_what_was_behind_it(entry):
    decision = told(entry, Cancel(), "10:01")
    assert (decision.entry, decision.outcome) == (None, Outcome.CANCELLED)


def test_cancelling_nothing_changes_nothing():
    assert told(None, Cancel(), "10:01") == Decision(None, Outcome.GONE)
