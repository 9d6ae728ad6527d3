"""The lease of a log: one compaction at a time, and what it publishes is fenced by its token."""

from dataclasses import replace
from threading import Event

import pytest
from tests.support.clocks import Clock
from tests.support.consensus import RacingConsensus
from tests.support.follow_world import MERGING, merge_that_ends

from tidemark.clock import SECOND
from tidemark.consensus.lease import LEASE, MARGIN
from tidemark.consensus.lease_holder import holding
from tidemark.consensus.objects import Change
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.lease import RACES, LogHeld, LogHold, LogLost, read_lease, take_log

pytestmark = pytest.mark.unit


@pytest.fixture
def clock() -> Clock:
    return Clock()


def given_log(control: LogControl, end: int = 10) -> LogHead:
    return control.replace_log(control.log_head().version, LogHead(manifest="one", digest="d", t=5, end=end))


def moved_to(manifest: str):
    return lambda head: replace(head, manifest=manifest)


def test_the_log_is_taken_prolonged_and_given_back(control, clock):
    hold = take_log(control, "compaction", clock)
    taken = read_lease(control).lease
    assert (taken.holder, taken.token, taken.deadline) == ("compaction", 1, clock.now + LEASE)
    clock.pass_seconds(30)
    hold.renew()
    assert read_lease(control).lease.deadline == clock.now + LEASE
    hold.release()
    assert (read_lease(control).lease, read_lease(control).token) == (None, 1)


def test_two_do_not_have_it_at_once(control, clock):
    take_log(control, "compaction", clock)
    with pytest.raises(LogHeld, match=r"orders: compaction has the log .* until .* UTC") as refused:
        take_log(control, "another", clock)
    assert refused.value.lease.holder == "compaction"


def test_of_two_that_take_it_in_the_same_moment_one_is_refused(control, consensus, clock):
    consensus.before_next_commit = lambda: take_log(control, "faster", clock)
    with pytest.raises(LogHeld, match="faster has the log"):
        take_log(control, "slower", clock)


# A follow's merge is waited for: it gives the log back in a moment


def test_the_merge_of_a_follow_is_waited_for(control):
    with merge_that_ends(control):
        assert take_log(control, "log compact of ann").lease.token == 2


def test_the_merge_of_a_follow_is_not_waited_for_for_ever(control, clock):
    take_log(control, MERGING, clock)
    with pytest.raises(LogHeld, match="merge 0a1b2c3d has the log"):
        take_log(control, "log compact of ann", clock, patience=0.1)


def test_a_follow_does_not_wait_for_its_own_merge(control, clock):
    take_log(control, MERGING, clock)
    with pytest.raises(LogHeld):
        take_log(control, "orders.follow run-1, merge 4e5f6a7b", clock)


def test_the_same_holder_may_take_it_again_and_the_old_hold_is_over(control, clock):
    old = take_log(control, "run 1", clock)
    new = take_log(control, "run 1", clock)
    assert new.lease.token == 2
    with pytest.raises(LogLost):
        old.renew()


def test_what_died_gives_it_back_by_itself(control, clock):
    old = take_log(control, "dead", clock)
    clock.pass_seconds(LEASE / SECOND)
    take_log(control, "next", clock)
    for change in (old.renew, old.release, lambda: old.record_plan("p"), old.check):
        with pytest.raises(LogLost, match="dead has lost the log"):
            change()


def test_a_plain_write_is_refused_before_the_deadline_is_over_by_any_clock(control, clock):
    hold = take_log(control, "compaction", clock)
    clock.now = hold.lease.deadline - MARGIN - 1
    hold.check()
    clock.now += 1
    with pytest.raises(LogLost):
        hold.check()


def test_a_hold_that_another_thread_has_prolonged_may_go_on(control, clock):
    hold = take_log(control, "compaction", clock)
    same = LogHold(control, hold.lease, clock)
    clock.pass_seconds(55)
    hold.renew()
    same.check()
    assert same.lease.deadline == clock.now + LEASE


def test_a_plan_is_on_record_until_it_is_carried_out(control, clock):
    given_log(control)
    hold = take_log(control, "compaction", clock)
    hold.record_plan("abc")
    hold.release()
    assert read_lease(control).plan == "abc"
    hold = take_log(control, "compaction", clock)
    assert read_lease(control).plan == "abc"
    after = hold.replace_log(moved_to("two"), lambda: Change({"compaction/1": "{}"}))
    assert (control.log_head(), read_lease(control).plan) == (after, None)
    assert (after.manifest, after.end, control.log_rows("compaction/")) == ("two", 10, {"compaction/1": "{}"})


def test_what_is_published_meanwhile_is_taken_into_account(control, consensus: RacingConsensus, clock):
    given_log(control)
    hold = take_log(control, "compaction", clock)
    consensus.before_next_commit = lambda: given_log(control, end=20)
    after = hold.replace_log(moved_to("two"))
    assert (after.end, control.log_head().manifest, control.log_head().end) == (20, "two", 20)


def test_a_hold_that_loses_races_renews_itself_and_makes_publications_wait_again_and_again(
    control, consensus: RacingConsensus, clock
):
    given_log(control)
    hold = take_log(control, "compaction", clock)
    deadlines, waits = [], []

    def rebase(head: LogHead) -> LogHead:
        row = read_lease(control)
        deadlines.append(row.lease.deadline - clock.now)
        waits.append(row.swap_until > clock.now)
        if len(waits) <= 3 * RACES:
            clock.pass_seconds(50)
            consensus.before_next_commit = lambda: given_log(control, end=10 + len(waits))
        return moved_to("two")(head)

    hold.replace_log(rebase)
    assert control.log_head().manifest == "two"
    assert min(deadlines) == LEASE
    assert waits == [number > 0 and number % RACES == 0 for number in range(3 * RACES + 1)]


def test_who_has_lost_the_log_publishes_nothing(control, consensus: RacingConsensus, clock):
    given_log(control)
    hold = take_log(control, "slow", clock)
    clock.pass_seconds(LEASE / SECOND)
    consensus.before_next_commit = lambda: take_log(control, "next", clock)
    with pytest.raises(LogLost):
        hold.replace_log(moved_to("two"))
    assert control.log_head().manifest == "one"


def test_a_rebase_that_refuses_changes_nothing(control, clock):
    before = given_log(control)

    def refuse(head: LogHead) -> LogHead:
        raise RuntimeError("a writer went back")

    hold = take_log(control, "compaction", clock)
    with pytest.raises(RuntimeError):
        hold.replace_log(refuse)
    assert replace(control.log_head(), version=0) == replace(before, version=0)
    hold.renew()


def test_the_lease_is_kept_alive_while_the_block_works_and_given_back_after_it(control):
    renewed = Event()

    class Watched(LogControl):
        def amend_log(self, rows, decide, patience=None):
            found = super().amend_log(rows, decide, patience)
            renewed.set()
            return found

    watched = Watched(control._consensus, "orders")
    with holding(LogHold(watched, take_log(control, "compaction").lease, lambda: 0), every=0.001):
        assert renewed.wait(10)
    assert read_lease(control).lease is None
