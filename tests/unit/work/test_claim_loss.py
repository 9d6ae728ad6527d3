"""Item 24: a lost claim names what really ended it, whichever way the user found out."""

from dataclasses import replace

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

from tidemark.work.claimed_item import Ticket
from tidemark.work.client import Work
from tidemark.work.errors import ClaimLost
from tidemark.work.model.claim_loss import LossCause
from tidemark.work.model.days import moment
from tidemark.work.store.entries import Entries, gone_of, is_long_gone

pytestmark = pytest.mark.unit


@pytest.fixture
def house() -> WorkWorld:
    return WorkWorld(memory_stores(), given_declaration(max_failures=2, history="7d", time_limit="60s"))


@pytest.fixture
def work(house) -> Work:
    return Work.of_journal(house.another(), owner="w1")


def lost(act, *arguments) -> ClaimLost:
    with pytest.raises(ClaimLost) as caught:
        act(*arguments)
    return caught.value


def claimed(work: Work, **options):
    work.insert("k", {"data": 1}, **options)
    (item,) = work.claim()
    return item


def test_i24_a_lapse_that_nothing_has_noticed_yet(house, work):
    item = claimed(work)
    house.clock.now += 62_000
    error = lost(work.refresh, item)
    assert (error.cause, error.at) == (LossCause.LAPSED, moment(MORNING + 61_000))
    assert "its time limit passed at 2026-11-17T10:01:01.000+00:00" in str(error)
    assert (error.holder, error.holder_token) == (None, None)


def test_i24_a_lapse_after_which_another_claim_has_the_entry(house, work):
    item = claimed(work)
    house.clock.now += 62_000
    (other,) = work.claim(owner="w2")
    error = lost(work.done, item)
    assert (error.cause, error.holder, error.holder_token) == (LossCause.LAPSED, "w2", other.token)
    assert f"w2 holds the entry now (token {other.token})" in str(error)


def test_i24_cancelled(work):
    item = claimed(work)
    work.cancel("k")
    error = lost(work.refresh, item)
    assert error.cause is LossCause.CANCELLED
    assert "was cancelled at" in str(error)
    assert "time limit" not in str(error)


def test_i24_cancelled_and_asked_for_again(work):
    item = claimed(work)
    work.cancel("k")
    work.insert("k", {"data": 2})
    assert lost(work.done, item).cause is LossCause.CANCELLED


def test_i24_expired(house, work):
    item = claimed(work, expires=MORNING + 30_000)
    house.clock.now += 31_000
    assert lost(work.refresh, item).cause is LossCause.EXPIRED
    house.sweep()
    assert lost(work.refresh, item).cause is LossCause.EXPIRED


def test_i24_done_already(work):
    item = claimed(work)
    work.done(item)
    error = lost(work.fail, item, "too late")
    assert error.cause is LossCause.DONE
    assert "There is nothing left to do." in str(error)


def test_i24_done_already_with_something_behind_it(work):
    item = claimed(work)
    work.insert("k", {"data": 2})
    work.done(item)
    assert lost(work.release, item).cause is LossCause.DONE


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (lambda work, item: work.fail(item, "no route"), LossCause.FAILED),
        (lambda work, item: work.snooze(item, MORNING + 5_000), LossCause.SNOOZED),
        (lambda work, item: work.release(item), LossCause.RELEASED),
    ],
)
def test_i24_ended_by_its_own_holder(work, end, cause):
    item = claimed(work)
    end(work, item)
    assert lost(work.done, item).cause is cause


def test_i24_given_up(house, work):
    work.fail(claimed(work), "no route")
    house.clock.now += 20_000
    (item,) = work.claim()
    assert work.fail(item, "no route") == "dead"
    error = lost(work.refresh, item)
    assert error.cause is LossCause.DEAD
    assert "tidemark work dead" in str(error)


def test_i24_older_than_the_newest_claim_that_ended(house, work):
    first = claimed(work)
    work.release(first)
    (second,) = work.claim(owner="w2")
    work.release(second)
    error = lost(work.done, first)
    assert error.cause is LossCause.SUPERSEDED
    assert f"that of w2 (token {second.token}), released at" in str(error)
    (third,) = work.claim(owner="w3")
    error = lost(work.done, first)
    assert (error.holder, error.holder_token) == ("w3", third.token)


def test_i24_a_token_that_never_was_one(work):
    work.insert("k", {"data": 1})
    assert lost(work.done, Ticket("k", "made up")).cause is LossCause.UNKNOWN
    assert lost(work.refresh, Ticket("never there", "made up")).cause is LossCause.UNKNOWN


def test_what_an_earlier_version_wrote_where_an_entry_was_is_understood():
    assert gone_of(f"gone {MORNING}").at == MORNING
    assert is_long_gone(f"gone {MORNING}", MORNING + 90_000_000)
    assert not is_long_gone(f"gone {MORNING}", MORNING)


def test_an_entry_that_an_earlier_version_wrote_is_understood(house, work):
    claimed(work)
    entries = Entries(house.stores.entries, house.declared.name)
    stored = entries.read("k")
    assert stored.entry is not None
    entries.write("k", stored.version, replace(stored.entry, last=None))
    assert lost(work.done, Ticket("k", "older")).cause is LossCause.SUPERSEDED
