"""Waits between connections: doubled, bounded, random."""

from random import Random

import pytest

from tidemark.oplog.consumer.backoff import LONGEST, LONGEST_ASKED_FOR, Backoff

pytestmark = pytest.mark.unit


def test_waits_double_up_to_the_longest():
    backoff = Backoff(Random(1))
    for index in range(12):
        longest = min(2**index, LONGEST)
        assert longest / 2 <= backoff.failed() <= longest


def test_two_consumers_do_not_come_back_together():
    assert Backoff(Random(1)).failed() != Backoff(Random(2)).failed()


def test_after_success_the_wait_is_short_again():
    backoff = Backoff(Random(1))
    for _ in range(10):
        backoff.failed()
    backoff.succeeded()
    assert backoff.failed() <= 1


def test_the_stream_says_how_long_the_first_wait_is():
    backoff = Backoff(Random(1))
    backoff.ask(5)
    assert backoff.failed() <= 0.005


@pytest.mark.parametrize("asked", [10**9, 10**11])
def test_a_wait_that_is_asked_for_is_bounded(asked):
    backoff = Backoff(Random(1))
    backoff.ask(asked)
    assert backoff.failed(at_least=asked) <= 2 * LONGEST_ASKED_FOR


def test_retry_after_is_the_least():
    assert Backoff(Random(1)).failed(at_least=60) >= 60
