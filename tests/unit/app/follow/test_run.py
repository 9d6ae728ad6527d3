"""A run of a follow, over rounds that the test gives and a clock that only sleeping moves."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.support.clocks import Clock
from tests.support.waiting import wait_until

from tidemark.app.follow.errors import RoundFailed, WritersLeftOut
from tidemark.app.follow.round_types import RoundDone
from tidemark.app.follow.run import FollowRun, Upkeep
from tidemark.clock import SECOND
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.deliver import Delivered
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.log.state.followed import TERM, read_followed
from tidemark.pipeline.model import FollowDeclaration

pytestmark = pytest.mark.unit

PLACE = ("orders", 0)
GATE = WriterGate(Cause.MESSAGE, 3, 3, 9, "cannot be decoded", 1)


@dataclass
class GivenRounds:
    """Rounds of which each takes a while; Kafka gets records when the test says so."""

    clock: Clock
    holder: str = "orders.follow run-1"
    takes: float = 0.3
    records: dict[int, int] = field(default_factory=dict)
    """Kafka's next offset from a number of whole rounds on."""
    results: dict[int, RoundDone] = field(default_factory=dict)
    reached: dict[tuple[str, int], int] = field(default_factory=lambda: {PLACE: 0})
    written_until: int = 0
    closes: dict[int, int] = field(default_factory=dict)
    """The first id of the active segment from a number of whole rounds on."""
    asked: int = 0
    wholes: int = 0
    looked_for_replicators: int = 0

    @property
    def end(self) -> int:
        return max((end for after, end in self.records.items() if self.asked >= after), default=0)

    @property
    def active_from(self) -> int:
        return max((id_ for after, id_ in self.closes.items() if self.wholes >= after), default=0)

    def ends(self) -> dict[tuple[str, int], int]:
        self.asked += 1
        return {PLACE: self.end}

    def refuse_replicator(self) -> None:
        self.looked_for_replicators += 1

    def whole(self, is_stopping) -> RoundDone:
        self.wholes += 1
        self.clock.pass_seconds(self.takes)
        new = self.end - self.reached[PLACE]
        self.reached = {PLACE: self.end}
        if self.wholes in self.results:
            return self.results[self.wholes]
        if not new:
            return RoundDone()
        return RoundDone({"stream": Delivered(self.end - 1)}, new, np.full(new, 0.5))


@pytest.fixture
def rounds(clock) -> GivenRounds:
    return GivenRounds(clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def consensus() -> MemoryConsensus:
    return MemoryConsensus()


def given_run(
    rounds: GivenRounds,
    consensus: MemoryConsensus,
    upkeep: Upkeep | None = None,
    lasts: str = "10s",
    sleep: Callable[[float], None] | None = None,
):
    declared = FollowDeclaration(every="1s", **{"for": lasts})
    return FollowRun(
        "orders",
        declared,
        rounds,
        consensus,
        upkeep or Upkeep(),
        clock=rounds.clock,
        sleep=sleep or rounds.clock.pass_seconds,
    )


def until_over(merges: list[str]) -> Callable[[Callable[[], bool]], None]:
    """A merge that takes until the run is over."""

    def merge(is_over: Callable[[], bool]) -> None:
        merges.append("began")
        wait_until(is_over)
        merges.append("ended")

    return merge


def sleep_after_merges(clock: Clock) -> Callable[[float], None]:
    """Time that passes only while no merge is under way."""

    def sleep(seconds: float) -> None:
        for thread in threading.enumerate():
            if thread.name == "merge":
                thread.join()
        clock.pass_seconds(seconds)

    return sleep


def test_an_idle_run_asks_kafka_every_second_and_looks_at_everything_every_five(rounds, consensus):
    summary = given_run(rounds, consensus).repeat()
    assert (rounds.asked, rounds.wholes) == (10, 2)
    assert (summary["rounds"], summary["idle"], summary["ended"]) == (10, 10, "over")


def test_new_records_are_a_whole_round(rounds, consensus):
    rounds.records = {3: 40}
    summary = given_run(rounds, consensus).repeat()
    assert summary["records"] == 40
    assert summary["p99"] == pytest.approx(0.5, rel=0.02)


def test_a_gate_that_closes_ends_the_run_after_the_round_and_is_named(rounds, consensus):
    rounds.records = {2: 10}
    rounds.results = {2: RoundDone({"stream": Delivered(2, gate=GATE, closed_now=True)})}
    summary = given_run(rounds, consensus).repeat()
    assert (summary["ended"], summary["closed"], rounds.wholes) == ("gate closed", ["stream"], 2)


def test_a_gate_that_was_closed_before_only_leaves_its_writer_out(rounds, consensus):
    rounds.records = {2: 10}
    rounds.results = {2: RoundDone({"stream": Delivered(2, gate=GATE), "plain": Delivered(9)}, 10)}
    assert given_run(rounds, consensus).repeat()["ended"] == "over"


def test_a_pipeline_that_waits_for_a_stopped_writer_ends_the_run(rounds, consensus):
    rounds.results = {1: RoundDone(must_wait=True)}
    assert given_run(rounds, consensus).repeat()["ended"] == "gate closed"


def test_a_signal_ends_the_run_after_its_round(rounds, consensus):
    summary = given_run(rounds, consensus).repeat(lambda: rounds.asked >= 3)
    assert (summary["ended"], rounds.asked) == ("stopped", 3)


def test_a_writer_that_fails_with_an_open_gate_is_an_error(rounds, consensus):
    rounds.results = {1: RoundDone({"stream": Delivered(2, failure="NoHostAvailable: gone")})}
    with pytest.raises(
        RoundFailed, match=r"orders: a round did not deliver everything\. stream: NoHostAvail"
    ):
        given_run(rounds, consensus).repeat()


def test_a_writer_that_a_person_has_to_repair_fails_the_run_at_its_end(rounds, consensus):
    rounds.records = {3: 40}
    rounds.results = {
        1: RoundDone({"plain": Delivered(2)}, needs_person={"stream": "orders/stream: no topic."})
    }
    with pytest.raises(WritersLeftOut, match=r"orders: .* orders/stream: no topic\. Repair") as failed:
        given_run(rounds, consensus).repeat()
    assert failed.value.needs_person
    assert (rounds.asked, read_followed(consensus, "orders").records) == (10, 40)


def test_a_writer_that_a_person_has_to_repair_is_shown_while_the_others_are_followed(rounds, consensus):
    seen = []
    rounds.results = {1: RoundDone({"plain": Delivered(2)}, needs_person={"stream": "no topic."})}
    run = given_run(rounds, consensus)

    def look() -> bool:
        run._renew()
        seen.append(dict(read_followed(consensus, "orders").needs_person))
        return False

    with pytest.raises(WritersLeftOut):
        run.repeat(look)
    assert (seen[0], seen[-1]) == ({}, {"stream": "no topic."})


def test_upkeep_is_done_in_its_windows_and_remembered_by_the_next_run(rounds, consensus):
    done: list[str] = []

    def reconcile() -> list[str]:
        done.append("reconcile")
        return []

    upkeep = Upkeep(reconcile, lambda is_over: done.append("merge"))
    rounds.clock.now = 1_200 * SECOND - 5 * SECOND  # windows of both end in 5 s
    given_run(rounds, consensus, upkeep).repeat()
    assert done == ["reconcile", "merge"]
    given_run(rounds, consensus, upkeep).repeat()
    assert done == ["reconcile", "merge"]


def test_a_reconciliation_that_closes_a_gate_ends_the_run(rounds, consensus):
    rounds.clock.now = 1_200 * SECOND - 5 * SECOND
    summary = given_run(rounds, consensus, Upkeep(lambda: ["stream"])).repeat()
    assert (summary["ended"], summary["closed"]) == ("gate closed", ["stream"])


def test_a_reconciliation_that_fails_is_not_tried_again_by_the_next_attempt(rounds, consensus):
    tried: list[int] = []

    def reconcile() -> list[str]:
        tried.append(rounds.wholes)
        raise ConnectionError("no broker")

    rounds.clock.now = 1_200 * SECOND - 5 * SECOND
    with pytest.raises(ConnectionError):
        given_run(rounds, consensus, Upkeep(reconcile)).repeat()
    assert given_run(rounds, consensus, Upkeep(reconcile)).repeat()["ended"] == "over"
    assert len(tried) == 1


def test_small_files_are_merged_every_minute(rounds, consensus):
    merges: list[int] = []
    upkeep = Upkeep(merge=lambda is_over: merges.append(rounds.clock.now // (60 * SECOND)))
    rounds.clock.now = 600 * SECOND
    given_run(rounds, consensus, upkeep, lasts="5m", sleep=sleep_after_merges(rounds.clock)).repeat()
    assert merges == [11, 12, 13, 14]


def test_small_files_are_merged_when_a_segment_has_closed(rounds, consensus):
    merges: list[int] = []
    rounds.clock.now, rounds.closes = 600 * SECOND, {8: 200}
    upkeep = Upkeep(merge=lambda is_over: merges.append(rounds.active_from))
    given_run(rounds, consensus, upkeep, lasts="50s", sleep=sleep_after_merges(rounds.clock)).repeat()
    assert merges == [200]


def test_a_merge_that_takes_long_is_not_joined_by_a_second_one(rounds, consensus):
    merges: list[str] = []
    run = given_run(rounds, consensus, Upkeep(merge=until_over(merges)), lasts="1h")
    assert run.repeat()["ended"] == "over"
    assert merges == ["began", "ended"]


def test_a_run_that_fails_waits_for_its_merge(rounds, consensus):
    merges: list[str] = []
    rounds.records = {8: 1}
    rounds.results = {3: RoundDone({"stream": Delivered(2, failure="NoHostAvailable: gone")})}
    rounds.clock.now = 1_200 * SECOND - 5 * SECOND
    with pytest.raises(RoundFailed):
        given_run(rounds, consensus, Upkeep(merge=until_over(merges))).repeat()
    assert merges == ["began", "ended"]


def test_a_run_whose_code_was_changed_is_over_within_a_minute(rounds, consensus):
    began, asked = rounds.clock.now, []

    def is_outdated() -> bool:
        asked.append((rounds.clock.now - began) / SECOND)
        return len(asked) == 2

    summary = given_run(rounds, consensus, Upkeep(is_outdated=is_outdated), lasts="1h").repeat()
    assert summary["ended"] == "over"
    assert asked == [pytest.approx(60, abs=1.5), pytest.approx(120, abs=2.5)]
    assert summary["seconds_followed"] == pytest.approx(120, abs=3)


def test_other_replicators_are_looked_for_at_the_beginning_and_every_minute(rounds, consensus):
    given_run(rounds, consensus, lasts="3m").repeat()
    assert rounds.looked_for_replicators == 3


# What status shows


def test_while_it_runs_it_is_followed_and_afterwards_not(rounds, consensus):
    seen = []

    def look() -> bool:
        seen.append(read_followed(consensus, "orders").is_current(rounds.clock.now))
        return False

    given_run(rounds, consensus).repeat(look)
    assert all(seen)
    assert not read_followed(consensus, "orders").is_current(rounds.clock.now)


def test_a_run_that_is_killed_counts_as_followed_for_its_term_only(rounds, consensus):
    run = given_run(rounds, consensus)
    run._renew()
    found = read_followed(consensus, "orders")
    assert found.is_current(rounds.clock.now + TERM - 1)
    assert not found.is_current(rounds.clock.now + TERM)


def test_the_end_of_an_older_run_leaves_the_row_of_a_newer_one(rounds, consensus):
    older, newer = given_run(rounds, consensus), given_run(rounds, consensus)
    rounds.holder = "orders.follow run-2"
    newer = given_run(rounds, consensus)
    newer._renew()
    older._release()
    assert read_followed(consensus, "orders").holder == "orders.follow run-2"


def test_an_attempt_ends_when_a_later_one_of_the_same_run_follows(rounds, consensus):
    # given: Airflow has lost the first attempt, which goes on, and has started the second
    first = given_run(rounds, consensus)
    rounds.clock.pass_seconds(30)
    second = given_run(rounds, consensus)
    second._renew()
    of_second = read_followed(consensus, "orders")
    # when
    ended = first.repeat()
    # then
    assert (ended["ended"], rounds.asked) == ("stopped", 0)
    assert read_followed(consensus, "orders") == of_second


def test_an_attempt_goes_on_after_a_dead_one_with_a_clock_that_is_ahead(rounds, consensus):
    rounds.clock.pass_seconds(30)
    given_run(rounds, consensus)._renew()
    rounds.clock.pass_seconds(-10)
    following = given_run(rounds, consensus)
    rounds.clock.pass_seconds(60)
    following._renew()
    assert read_followed(consensus, "orders").is_current(rounds.clock.now)


def test_a_writer_that_is_behind_gets_whole_rounds_at_once_and_counts_as_lag(rounds, consensus):
    began = rounds.clock.now
    lacking = RoundDone({"stream": Delivered(2)}, waiting_since=began - 600 * SECOND, is_behind=True)
    rounds.results = dict.fromkeys(range(1, 9), lacking)
    lags = []

    def look() -> bool:
        lags.append(run._followed.lag)
        return rounds.wholes == 8

    run = given_run(rounds, consensus)
    assert run.repeat(look)["ended"] == "stopped"
    assert (rounds.clock.now - began) / SECOND == pytest.approx(8 * rounds.takes)
    assert lags[-1] >= 600


def seen_in_a_long_round(rounds, consensus, seconds: float, ended: int) -> float:
    """The lag that the control plane has after so many seconds of a round that has not ended."""
    run, whole = given_run(rounds, consensus, lasts="1h"), rounds.whole
    seen = []

    def long(is_stopping) -> RoundDone:
        if rounds.wholes == ended:
            rounds.clock.pass_seconds(seconds)
            run._renew()
            seen.append(read_followed(consensus, "orders").lag)
        return whole(is_stopping)

    rounds.whole = long
    run.repeat(lambda: bool(seen))
    return seen[0]


@pytest.mark.parametrize("ended", [0, 1])
def test_while_a_round_takes_long_the_lag_grows_with_it(rounds, consensus, ended):
    rounds.records = {3: 40}
    assert seen_in_a_long_round(rounds, consensus, 60, ended) == pytest.approx(60, abs=1.5)


def test_a_round_that_is_not_overdue_is_no_lag(rounds, consensus):
    assert seen_in_a_long_round(rounds, consensus, 0.5, 0) == 0.0


def test_what_a_held_writer_lacks_is_lag_also_after_rounds_without_anything_new(rounds, consensus):
    began = rounds.clock.now
    rounds.results = {n: RoundDone(held=["stream"], waiting_since=began) for n in (1, 2)}
    summary = given_run(rounds, consensus).repeat()
    assert rounds.asked > rounds.wholes
    assert summary["lag"] == read_followed(consensus, "orders").lag >= 9
