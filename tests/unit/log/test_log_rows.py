"""What the log object keeps for compaction: pins, enrolled writers, history."""

import pytest
from tests.support.clocks import Clock
from tests.support.consensus import RacingConsensus
from tests.support.follow_world import merge_that_ends

from tidemark.clock import wall_clock
from tidemark.log.state.compactions import (
    MOST,
    CompactionOutcome,
    CompactionRecord,
    compactions,
    record_compaction,
)
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.lease import LogHeld, take_log
from tidemark.log.state.pins import NotPinned, Pin, add_pin, pins, release_pin, releases
from tidemark.log.state.registered_writers import Enrolled, enrol, enrolled, ensure_enrolled, withdraw

pytestmark = pytest.mark.unit

NOW = Clock().now


@pytest.fixture
def log(control) -> LogControl:
    control.replace_log(0, LogHead(manifest="one", digest="d", t=5, end=10, compacted_below=4))
    return control


# Pins


def test_a_pin_holds_until_a_person_releases_it(log):
    add_pin(log, Pin(7, "ann", "evidence", NOW))
    add_pin(log, Pin(3, "bob", "example", NOW))
    assert [(pin.id, pin.who) for pin in pins(log)] == [(3, "bob"), (7, "ann")]
    release_pin(log, 7, "carol", "case closed", NOW + 1)
    assert [pin.id for pin in pins(log)] == [3]
    (released,) = releases(log)
    assert (released.pin, released.by.who, released.by.reason) == (
        Pin(7, "ann", "evidence", NOW),
        "carol",
        "case closed",
    )


def test_what_is_pinned_already_stays_as_it_is(log):
    add_pin(log, Pin(7, "ann", "evidence", NOW))
    assert add_pin(log, Pin(7, "bob", "mine too", NOW)).who == "ann"
    assert [pin.who for pin in pins(log)] == ["ann"]


@pytest.mark.parametrize("id_", [-1, 11])
def test_only_ids_of_the_log_are_pinned(log, id_):
    with pytest.raises(NotPinned, match=f"ids from 0 to 10, so {id_} cannot be pinned. Nothing was changed"):
        add_pin(log, Pin(id_, "ann", "evidence", NOW))


def test_only_what_is_pinned_can_be_released(log):
    with pytest.raises(NotPinned, match="id 7 is not pinned"):
        release_pin(log, 7, "ann", "why not", NOW)


def test_no_pin_is_set_under_a_running_compaction_but_one_may_be_released(log):
    add_pin(log, Pin(7, "ann", "evidence", NOW))
    take_log(log, "compaction", Clock())
    with pytest.raises(LogHeld, match=r"compaction has the log .* a pin is refused"):
        add_pin(log, Pin(8, "ann", "evidence", NOW))
    release_pin(log, 7, "ann", "done", NOW)
    assert pins(log) == []


def test_a_pin_waits_for_the_merge_of_a_follow(log):
    with merge_that_ends(log):
        add_pin(log, Pin(7, "ann", "evidence", wall_clock()))
    assert [pin.id for pin in pins(log)] == [7]


# Writers


def test_a_writer_is_put_on_the_list_with_the_head_of_that_moment(log):
    assert enrol(log, Enrolled("archive", 0), NOW, "…").compacted_below == 4
    assert enrolled(log) == {"archive": Enrolled("archive", 0)}


def test_the_list_takes_no_writer_while_the_log_is_leased(log):
    take_log(log, "compaction", Clock())
    with pytest.raises(LogHeld, match=r"compaction has the log .* a new writer is refused"):
        enrol(log, Enrolled("archive", 0), NOW, "a new writer is refused")
    assert enrolled(log) == {}


def test_a_writer_waits_for_the_merge_of_a_follow(log):
    with merge_that_ends(log):
        enrol(log, Enrolled("archive", 0), wall_clock(), "a new writer is refused")
    assert enrolled(log) == {"archive": Enrolled("archive", 0)}


def test_who_takes_the_log_between_look_and_listing_is_faster(log, consensus: RacingConsensus):
    consensus.before_next_commit = lambda: take_log(log, "compaction", Clock())
    with pytest.raises(LogHeld):
        enrol(log, Enrolled("archive", 0), NOW, "a new writer is refused")


def test_a_writer_that_was_registered_before_there_was_a_list_is_put_on_it_at_any_time(log):
    take_log(log, "compaction", Clock())
    ensure_enrolled(log, Enrolled("archive", 3))
    ensure_enrolled(log, Enrolled("archive", 9))
    assert enrolled(log) == {"archive": Enrolled("archive", 3)}


def test_a_writer_is_taken_off_the_list_unless_something_else_was_said_since(log):
    enrol(log, Enrolled("archive", 3), NOW, "…")
    withdraw(log, Enrolled("archive", 2))
    assert set(enrolled(log)) == {"archive"}
    withdraw(log, Enrolled("archive", 3))
    assert enrolled(log) == {}


def test_a_rewind_counts_as_long_as_it_may_still_happen():
    going_back = Enrolled("archive", version=7, least=2)
    assert going_back.position(version=7, position=9) == 2
    assert going_back.position(version=8, position=9) == 9
    assert Enrolled("archive", version=7).position(version=7, position=9) == 9


# History


def test_compactions_are_kept_oldest_first(log):
    done = CompactionRecord(
        NOW,
        "run 1",
        "journal",
        CompactionOutcome.COMPACTED,
        watermark=9,
        bytes_before=100,
        bytes_after=30,
        seconds=1.5,
    )
    refused = CompactionRecord(NOW + 1, "run 2", "journal", CompactionOutcome.REFUSED, "a file is damaged")
    record_compaction(log, done)
    record_compaction(log, refused)
    assert compactions(log) == [done, refused]
    assert (done.bytes_reclaimed, compactions(log, 1)) == (70, [refused])


def test_of_very_many_compactions_the_oldest_are_forgotten(log):
    for number in range(MOST + 2):
        record_compaction(log, CompactionRecord(number, "run", "latest", CompactionOutcome.NOTHING_TO_DO))
    kept = compactions(log, 10_000)
    assert (len(kept), kept[0].at, kept[-1].at) == (MOST, 2, MOST + 1)


def test_two_compactions_at_once_are_both_on_record(log, consensus: RacingConsensus):
    one = CompactionRecord(1, "one", "latest", CompactionOutcome.NOTHING_TO_DO)
    other = CompactionRecord(2, "other", "latest", CompactionOutcome.NOTHING_TO_DO)
    consensus.before_next_commit = lambda: record_compaction(log, one)
    record_compaction(log, other)
    assert compactions(log) == [one, other]
