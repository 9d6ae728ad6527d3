"""When a follow does what: times are arguments, so every case is a line."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.log_samples import given_binding

from tidemark.app.follow.pace import (
    LOOK,
    MOST_AHEAD,
    FollowStep,
    RoundKind,
    Timing,
    is_due,
    next_step,
    round_kind,
    write_times_end,
)
from tidemark.clock import SECOND
from tidemark.pipeline.model import FollowDeclaration

pytestmark = pytest.mark.unit

DECLARED = FollowDeclaration()
BEGAN = 1_000 * SECOND
PLACE = ("orders", 0)


def step(now: float, timing: Timing | None = None, **flags: bool) -> tuple[FollowStep, float]:
    """The step so many seconds after the run began, and for a pause until when."""
    found, until = next_step(DECLARED, timing or Timing(BEGAN), BEGAN + round(now * SECOND), **flags)
    return found, (until - BEGAN) / SECOND


def timing(**seconds: float) -> Timing:
    return Timing(BEGAN, **{name: BEGAN + round(at * SECOND) for name, at in seconds.items()})


def test_the_first_round_begins_at_once():
    assert step(0)[0] is FollowStep.ROUND


def test_the_next_round_begins_a_second_after_the_last_one_began():
    assert step(5.4, timing(round_began=5)) == (FollowStep.PAUSE, 6)
    assert step(6, timing(round_began=5))[0] is FollowStep.ROUND


def test_a_round_that_took_longer_is_followed_by_the_next_at_once():
    assert step(8.5, timing(round_began=5))[0] is FollowStep.ROUND


def test_a_run_is_over_after_its_time():
    assert step(599.9, timing(round_began=598))[0] is FollowStep.ROUND
    assert step(600, timing(round_began=598))[0] is FollowStep.END_OVER


def test_a_run_with_outdated_code_is_over():
    assert step(3, timing(round_began=2), is_outdated=True)[0] is FollowStep.END_OVER
    assert step(3, is_closed=True, is_outdated=True)[0] is FollowStep.END_CLOSED


def test_a_pause_ends_with_the_run():
    declared = FollowDeclaration(every="60s", **{"for": "90s"})
    found = next_step(declared, timing(round_began=60), BEGAN + 61 * SECOND)
    assert found == (FollowStep.PAUSE, BEGAN + 90 * SECOND)


def test_a_signal_ends_the_run_before_anything_else():
    assert step(3, is_stopping=True, is_closed=True)[0] is FollowStep.END_STOPPED


def test_a_gate_that_closed_in_this_run_ends_it():
    assert step(3, is_closed=True)[0] is FollowStep.END_CLOSED


def test_a_round_waits_while_write_times_are_more_than_five_seconds_ahead():
    """Three rounds of five million ids took 15 s of write times in 3 s."""
    ahead = timing(round_began=3, written_until=15)
    assert step(4, ahead) == (FollowStep.PAUSE, 10)
    assert step(10, ahead)[0] is FollowStep.ROUND


def test_the_end_of_a_bindings_write_times():
    assert write_times_end(given_binding(7 * SECOND, 0, ("orders", 0, 0, 40))) == 7 * SECOND + 40


def test_while_a_writer_is_behind_the_next_round_begins_at_once():
    behind = replace(timing(round_began=5), is_behind=True)
    assert step(5.4, behind)[0] is FollowStep.ROUND
    ahead = replace(timing(round_began=5, written_until=15), is_behind=True)
    assert step(5.4, ahead) == (FollowStep.PAUSE, 10)


# How much a round does


def kind(reached: dict, ends: dict, looked: float | None = 0, now: float = 1) -> RoundKind:
    seen = timing() if looked is None else timing(looked=looked)
    return round_kind(reached, ends, seen, BEGAN + round(now * SECOND))


def test_a_round_without_anything_new_is_idle():
    assert kind({PLACE: 7}, {PLACE: 7}) is RoundKind.IDLE


@pytest.mark.parametrize("end", [8, 6])
def test_more_records_and_lost_records_need_a_whole_round(end):
    assert kind({PLACE: 7}, {PLACE: end}) is RoundKind.WHOLE


def test_a_partition_that_kafka_does_not_know_any_more_needs_a_whole_round():
    assert kind({PLACE: 7}, {}) is RoundKind.WHOLE


def test_the_first_round_looks_at_everything():
    assert kind({PLACE: 7}, {PLACE: 7}, looked=None) is RoundKind.WHOLE
    assert kind({}, {}, looked=None) is RoundKind.WHOLE


def test_an_idle_follow_looks_at_everything_every_five_seconds():
    assert kind({PLACE: 7}, {PLACE: 7}, looked=0, now=4.9) is RoundKind.IDLE
    assert kind({PLACE: 7}, {PLACE: 7}, looked=0, now=5) is RoundKind.WHOLE
    assert LOOK == 5 * SECOND


def test_while_a_writer_is_behind_rounds_are_whole_although_kafka_is_quiet():
    behind = replace(timing(looked=0), is_behind=True)
    assert round_kind({PLACE: 7}, {PLACE: 7}, behind, BEGAN + SECOND) is RoundKind.WHOLE


# Upkeep


def test_upkeep_is_due_once_in_every_window_of_the_clock_however_short_the_runs():
    minutes = 5 * 60 * SECOND
    assert not is_due(minutes, minutes, minutes + minutes - 1)
    assert is_due(minutes + minutes - 1, minutes, 2 * minutes)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_write_times_are_never_allowed_far_ahead_of_the_clock(now, round_began, ahead):
    """Whatever happened before, a round begins only where the rule holds."""
    seen = Timing(BEGAN, BEGAN + round_began, None, BEGAN + ahead)
    found, until = next_step(FollowDeclaration(**{"for": timedelta(hours=1)}), seen, BEGAN + now)
    if found is FollowStep.ROUND:
        assert seen.written_until <= BEGAN + now + MOST_AHEAD
    elif found is FollowStep.PAUSE:
        assert until > BEGAN + now
