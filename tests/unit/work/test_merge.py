"""Worked example 3.1 and the statements about keys (25 to 32), case by case."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.work_samples import E0, HOUR_LIMIT, at, given_packet, given_running, with_request

from tidemark.work.model.decision import Outcome
from tidemark.work.model.entry import Entry, Packet, Request, Status
from tidemark.work.model.merge import merge
from tidemark.work.model.requests import request_of
from tidemark.work.model.rules import OnMerge, Rules

pytestmark = pytest.mark.unit

M2_PACKET = given_packet("10:00:05.500", "0", 20, "10:00:08", "rev8")
M5_PACKET = given_packet("10:20:00", "0", 10, "10:20:10", "rev8")


def after(old: Entry | None, packet: Packet, now: str, rules: Rules = HOUR_LIMIT) -> Entry | None:
    return merge(old, packet, at(now), rules).entry


M2 = after(E0, M2_PACKET, "10:00:05.500")
M5 = after(given_running(), M5_PACKET, "10:20:00")


def row(entry: Entry | None) -> tuple[int, int, int, int, str, int | None, int, str]:
    r = entry.request
    return (
        r.inserted,
        r.expires,
        r.priority,
        r.process,
        entry.status,
        entry.start,
        entry.timeouts,
        r.payload,
    )


def test_M1_first_insert():
    decision = merge(None, given_packet("10:00", "12:00", 180, "10:00:10", "rev7"), at("10:00"), HOUR_LIMIT)
    assert decision.entry == replace(E0, timeouts=0)
    assert decision.outcome is Outcome.INSERTED


def test_M2_all_fields():
    assert row(M2) == (at("10:00"), 0, 20, at("10:00:10"), "W", None, 0, "rev8")


def test_M3_weaker_request():
    weaker = given_packet("10:00:06", "11:00", 230, "10:03", "rev9")
    assert row(after(E0, weaker, "10:00:06")) == (
        at("10:00"),
        at("12:00"),
        180,
        at("10:03"),
        "W",
        None,
        0,
        "rev9",
    )


def test_M4_never_stays_never():
    old = with_request(E0, expires=0)
    merged = after(old, given_packet("10:00:06", "11:00", 180, "10:00:10", "rev8"), "10:00:06")
    assert merged.request.expires == 0


def test_M5_a_running_entry_is_left_alone():
    decision = merge(given_running(), M5_PACKET, at("10:20"), HOUR_LIMIT)
    assert replace(decision.entry, successor=None) == given_running()
    assert decision.entry.successor == Request(at("10:20"), at("10:20"), 0, 10, at("10:20:10"), "rev8", 1)
    assert decision.outcome is Outcome.QUEUED


def test_M6_further_requests_merge_with_the_successor():
    merged = after(M5, given_packet("10:21", "0", 50, "10:21:10", "rev9"), "10:21")
    assert merged.successor == Request(at("10:20"), at("10:21"), 0, 10, at("10:21:10"), "rev9", 1)


def test_M7_running_but_lapsed():
    packet = given_packet("11:00:11", "0", 20, "11:00:21", "rev8")
    merged = after(given_running(), packet, "11:00:11")
    assert row(merged) == (at("10:00"), 0, 20, at("11:00:21"), "W", at("10:00:10"), 0, "rev8")
    assert (merged.total_timeouts, merged.token) == (1, None)


def test_M7_at_the_limit_of_timeouts_it_dies_and_the_packet_begins_anew():
    packet = given_packet("11:00:11", "0", 20, "11:00:21", "rev8")
    decision = merge(given_running(timeouts=4), packet, at("11:00:11"), HOUR_LIMIT)
    assert (decision.dead.timeouts, decision.dead.request.payload) == (5, "rev7")
    assert row(decision.entry) == (at("11:00:11"), 0, 20, at("11:00:21"), "W", None, 0, "rev8")


def test_M8_expired_is_a_plain_insert():
    packet = given_packet("12:00:01", "0", 180, "12:00:11", "rev8")
    decision = merge(E0, packet, at("12:00:01"), HOUR_LIMIT)
    assert row(decision.entry) == (at("12:00:01"), 0, 180, at("12:00:11"), "W", None, 0, "rev8")
    assert decision.outcome is Outcome.INSERTED


def test_M9_a_late_packet_keeps_the_payload_and_the_counter():
    old = replace(M2, timeouts=1)
    merged = after(old, given_packet("10:00:03", "0", 10, "10:00:30", "rev7b"), "10:00:40")
    assert row(merged) == (at("10:00"), 0, 10, at("10:00:30"), "W", None, 1, "rev8")


def test_M10_a_repeated_packet_changes_nothing():
    decision = merge(replace(M2, timeouts=1), M2_PACKET, at("10:00:09"), HOUR_LIMIT)
    assert (decision.entry, decision.outcome) == (replace(M2, timeouts=1), Outcome.UNCHANGED)


def test_M12_the_ceiling_of_delays():
    rules = replace(HOUR_LIMIT, max_delay=60_000)
    merged = after(E0, given_packet("10:00:55", "0", 180, "10:01:05", "rev8"), "10:00:55", rules)
    assert merged.request.process == at("10:01:00")


def test_S7_a_process_date_before_the_insertion_date_is_raised_to_it():
    inserted = after(None, given_packet("10:00:00", "0", 180, "09:00:00", "rev1"), "10:00:00")
    assert inserted.request.process == at("10:00:00")


def test_S19_a_merge_across_a_schema_change_has_the_new_payload_and_its_schema():
    newer = replace(M2_PACKET, schema=2)
    merged = after(E0, newer, "10:00:06").request
    assert (merged.payload, merged.schema, merged.inserted) == ("rev8", 2, at("10:00"))


def test_S26_a_plain_insert_waits_with_counter_0():
    inserted = after(None, M2_PACKET, "10:00:06")
    assert (inserted.status, inserted.timeouts, inserted.token) == (Status.WAITING, 0, None)


def test_S31_a_hundred_inserts_are_one_entry_with_the_last_payload():
    entry = None
    for number in range(100):
        packet = Packet("page/42", at("10:00") + number, at("10:05"), f"rev{number}")
        entry = after(entry, packet, "10:00:01")
    assert (entry.request.payload, entry.request.inserted) == ("rev99", at("10:00"))


def test_S32_inserting_again_pushes_back():
    assert after(E0, given_packet("10:00:06", "0", 180, "10:09", "x"), "10:00:06").request.process == at(
        "10:09"
    )


def test_D2_9_two_packets_of_one_millisecond_converge():
    one, other = replace(M2_PACKET, payload="a"), replace(M2_PACKET, payload="b")
    first = after(after(None, one, "10:00:06"), other, "10:00:06")
    assert first == after(after(None, other, "10:00:06"), one, "10:00:06")


def test_D2_19_a_request_behind_an_expired_run_is_what_the_next_one_merges_with():
    behind = replace(given_running("11:59:59"), successor=M5.successor)
    merged = after(behind, given_packet("12:00:01", "0", 50, "12:01", "rev9"), "12:00:01")
    assert row(merged) == (at("10:20"), 0, 10, at("12:01"), "W", None, 0, "rev9")
    assert merged.successor is None


def test_D2_21_throttling_keeps_the_date():
    rules = replace(HOUR_LIMIT, on_merge=OnMerge.KEEP)
    merged = after(E0, given_packet("10:00:06", "0", 10, "10:09", "rev8"), "10:00:06", rules)
    assert (merged.request.process, merged.request.payload) == (at("10:00:10"), "rev8")


def test_a_packet_that_has_expired_already_is_not_stored():
    decision = merge(None, given_packet("10:00", "09:00", 180, "10:00", "x"), at("10:00"), HOUR_LIMIT)
    assert (decision.entry, decision.outcome) == (None, Outcome.EXPIRED)


def test_a_newer_payload_starts_the_failures_again():
    failed = replace(E0, failures=3, error="no route")
    merged = after(failed, M2_PACKET, "10:00:06")
    assert (merged.failures, merged.error) == (0, None)


PACKETS = st.builds(
    Packet,
    key=st.just("k"),
    inserted=st.integers(1_000, 1_020),
    process=st.integers(900, 1_100),
    payload=st.sampled_from("abc"),
    priority=st.integers(0, 255),
    expires=st.sampled_from([0, 5_000_000, 6_000_000]),
)


@given(st.data(), st.lists(PACKETS, min_size=1, max_size=6))
def test_D2_9_any_order_and_any_repetition_gives_the_same_row(data, packets):
    def fold(arrivals: list[Packet]) -> Request:
        entry = None
        for packet in arrivals:
            entry = merge(entry, packet, 2_000, HOUR_LIMIT).entry
        return replace(entry.request, inserted=0)

    shuffled = data.draw(st.permutations(packets + data.draw(st.lists(st.sampled_from(packets), max_size=3))))
    assert fold(packets) == fold(shuffled)


@given(PACKETS)
def test_M1_alone_a_packet_is_what_it_says(packet):
    request = merge(None, packet, 2_000, HOUR_LIMIT).entry.request
    assert request == request_of(packet, HOUR_LIMIT)
    assert request.process >= request.inserted
