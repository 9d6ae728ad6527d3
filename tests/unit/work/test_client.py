"""``Work`` and ``AsyncWork`` in memory: what callers give and get."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores
from tests.support.waiting import wait_until

import tidemark
from tidemark.work.async_client import AsyncWork
from tidemark.work.claim_renewal import KeptClaims
from tidemark.work.claimed_item import Ticket, WorkItem
from tidemark.work.client import Work
from tidemark.work.errors import BadRequest, ClaimLost
from tidemark.work.model.days import moment
from tidemark.work.model.entry_view import WorkStatus

pytestmark = pytest.mark.unit


@pytest.fixture
def house() -> WorkWorld:
    return WorkWorld(memory_stores(), given_declaration(max_failures=1, history="7d", time_limit="60s"))


@pytest.fixture
def work(house) -> Work:
    return Work.of_journal(house.another(), owner="me")


def test_the_package_has_both():
    assert (tidemark.Work, tidemark.AsyncWork) == (Work, AsyncWork)


def test_an_item_has_what_a_worker_needs(work):
    work.insert("k", {"data": [1, None]}, priority=20, expires=timedelta(hours=1))
    (item,) = work.claim()
    assert (item.key, item.payload, item.priority, item.owner) == ("k", {"data": [1, None]}, 20, "me")
    assert (item.inserted, item.expires) == (moment(MORNING), moment(MORNING + 3_600_000))
    assert (item.timeouts, item.error) == (0, None)


def test_a_key_of_several_columns_comes_back_as_it_was_given(house):
    declared = given_declaration(key={"site": "text", "page": "int"})
    work = Work.of_journal(WorkWorld(house.stores, declared, house.clock).journal)
    work.insert({"page": 7, "site": "a"}, {"data": 1})
    (item,) = work.claim()
    assert item.key == {"site": "a", "page": 7}
    assert work.get({"site": "a", "page": 7}).status is WorkStatus.PROCESSING


def test_dates_are_milliseconds_times_or_from_now(house, work):
    work.insert("a", {"data": 1}, process=datetime(2026, 11, 17, 11, tzinfo=UTC))
    work.insert("b", {"data": 1}, process=timedelta(minutes=5))
    work.insert("c", {"data": 1}, process=MORNING + 9)
    dates = [entry.process for entry in work.entries()]
    assert dates == [
        datetime(2026, 11, 17, 10, 0, 0, 9_000, tzinfo=UTC),
        datetime(2026, 11, 17, 10, 5, tzinfo=UTC),
        datetime(2026, 11, 17, 11, tzinfo=UTC),
    ]


def test_a_time_without_a_zone_is_refused(work):
    with pytest.raises(BadRequest, match="no time zone"):
        work.insert("k", {"data": 1}, process=datetime(2026, 11, 17, 11))
    assert work.get("k") is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda work: work.insert("new", {"data": "x" * 70_000}), "takes 65,536"),
        (lambda work: work.insert("new", {"other": 1}), "`other` is not declared"),
        (lambda work: work.insert("new", {"data": 1}, priority=-1), "0 to 255"),
        (lambda work: work.insert("new", {"data": 1}, expires=-1), "`expires` is -1"),
        (lambda work: work.claim(-1), "`limit` is -1"),
        (lambda work: work.claim(1, owner="x" * 201), "`owner` must be text"),
        (lambda work: work.snooze(Ticket("k", "token"), -1), "`until` is -1"),
        (lambda work: work.snooze(Ticket("k", "token"), None), "`until` is missing"),
        (lambda work: work.snooze(Ticket("k", "token"), 2**60), "`until` is more than ten years ahead"),
        (lambda work: work.insert("new", {"data": 1}, expires=2**60), "expiry of new is more than ten"),
        (lambda work: work.fail(Ticket("k", "token"), None), "`error` must be text"),
        (lambda work: work.history(-1), "`days` is -1"),
    ],
)
def test_bad_input_is_a_clear_error_and_changes_nothing(house, work, asked, said):
    work.insert("k", {"data": 1})
    before = house.stored("k")
    with pytest.raises(BadRequest, match=said) as refusal:
        asked(work)
    assert str(refusal.value).endswith("Nothing was changed.")
    assert (house.stored("k"), house.stored("new")) == (before, None)


@pytest.mark.parametrize(
    "act",
    [
        lambda work, ticket: work.done(ticket),
        lambda work, ticket: work.refresh(ticket),
        lambda work, ticket: work.release(ticket),
        lambda work, ticket: work.fail(ticket, "no route"),
        lambda work, ticket: work.snooze(ticket, timedelta(minutes=1)),
    ],
)
def test_the_token_of_another_claim_ends_nothing(house, work, act):
    for key in ("k", "other"):
        work.insert(key, {"data": 1})
    tokens = {item.key: item.token for item in work.claim(2)}
    before = house.stored("k")
    with pytest.raises(ClaimLost):
        act(work, Ticket("k", tokens["other"]))
    assert house.stored("k") == before


def test_a_claim_ends_by_its_token_alone(work):
    work.insert("k", {"data": 1})
    (item,) = work.claim()
    with pytest.raises(ClaimLost) as lost:
        work.done(Ticket("k", "another"))
    assert (lost.value.key, lost.value.token, lost.value.doing) == ("k", "another", "done")
    assert work.done(Ticket("k", item.token)) == "done"
    assert work.done(Ticket("k", item.token)) == "gone"


def test_a_dead_letter_is_sent_again(work):
    work.insert("k", {"data": 1})
    (item,) = work.claim()
    assert work.fail(item, "no route") == "dead"
    (letter,) = work.dead()
    assert work.redrive(letter, who="ann", reason="the route is there") == "inserted"
    assert list(work.dead()) == []
    assert [deed.what for deed in work.deeds()] == ["redrive k"]
    (item,) = work.claim()
    assert (item.payload, item.failures) == ({"data": 1}, 0)
    assert [run.status for run in work.history()] == ["failed"]


def test_a_redriven_letter_does_not_take_the_place_of_something_newer(house, work):
    work.insert("k", {"data": 1})
    (item,) = work.claim()
    work.fail(item, "no route")
    house.clock.to("10:01")
    work.insert("k", {"data": 2})
    work.redrive(*work.dead())
    (item,) = work.claim()
    assert item.payload == {"data": 2}


def test_pause_and_resume_are_kept_with_who_and_why(house, work):
    work.insert("k", {"data": 1})
    work.pause("ann", "maintenance")
    assert work.stats().paused == "maintenance"
    house.clock.now += 1_000
    assert work.claim() == []
    work.resume("ann", "over")
    house.clock.now += 1_000
    assert len(work.claim()) == 1
    assert [deed.what for deed in work.deeds()] == ["resume", "pause"]


def test_a_journal_is_ready_when_a_claim_would_get_something(house, work):
    assert not work.is_ready()
    work.insert("k", {"data": 1}, process=timedelta(seconds=30))
    assert not work.is_ready()
    house.clock.to("10:00:30")
    assert work.is_ready()
    work.pause("ann", "maintenance")
    assert not work.is_ready()
    work.resume("ann", "over")
    house.clock.to("10:00:31")
    assert len(work.claim()) == 1
    assert not work.is_ready()
    house.clock.to("10:01:32")
    assert work.is_ready(), "the claim has lapsed"
    assert work.get("k").status is WorkStatus.WAITING


def test_waiting_ends_when_something_is_due(house, work):
    slept = []
    work.insert("k", {"data": 1}, process=timedelta(seconds=30))
    work.wait(sleep=slept.append)
    work.wait(seconds=3, sleep=slept.append)
    assert slept == [30.0, 3]


def test_waiting_for_nothing_is_bounded(work):
    slept = []
    work.wait(seconds=10**9, sleep=slept.append)
    assert slept == [300.0]


class Rung:
    def __init__(self) -> None:
        self.rings, self.waits = [], []

    def ring(self, key: str) -> None:
        self.rings.append(key)

    def listen(self, seconds: float) -> bool:
        return not self.waits

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return True

    def close(self) -> None:
        self.rings.append("closed")


def test_an_insert_wakes_and_a_wait_is_woken(house):
    bell = Rung()
    with Work.of_journal(house.another(), bell) as work:
        work.insert("k", {"data": 1}, process=timedelta(seconds=30))
        work.wait()
    assert (bell.rings, bell.waits) == (["k", "closed"], [30.0])


def test_claims_are_kept_while_they_are_worked_on(house, work):
    work.insert("k", {"data": 1})
    (item,) = work.claim()
    with KeptClaims(work, [item], every=3600) as kept:
        for minute in range(1, 5):
            house.clock.now = MORNING + minute * 45_000
            kept.refresh()
        item = kept.ended(item)
    assert work.done(item) == "done"
    assert kept.lost == frozenset()


def test_a_claim_that_is_lost_meanwhile_is_known(house, work):
    work.insert("k", {"data": 1})
    (item,) = work.claim()
    with KeptClaims(work, [item], every=3600) as kept:
        house.clock.now += 62_000
        kept.refresh()
        assert kept.lost == {item.token}


def given_unreachable(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(item: object) -> None:
        raise OSError("no host answers")

    monkeypatch.setattr(work, "refresh", refuse)


def test_a_refresh_that_meets_an_error_is_tried_again(house, work, monkeypatch):
    work.insert("k", {"data": 1})
    (item,) = work.claim()
    with KeptClaims(work, [item], every=3600) as kept:
        with monkeypatch.context() as trouble:
            given_unreachable(work, trouble)
            house.clock.now += 45_000
            kept.refresh()
        assert kept.lost == frozenset()
        kept.refresh()
        house.clock.now += 45_000
        assert kept.lost == frozenset()
        assert work.done(kept.ended(item)) == "done"


def test_a_claim_that_cannot_be_refreshed_is_lost_after_its_limit(house, work, monkeypatch):
    work.insert("k", {"data": 1})
    (item,) = work.claim()
    with KeptClaims(work, [item], every=3600) as kept:
        given_unreachable(work, monkeypatch)
        house.clock.now += 60_000
        kept.refresh()
        assert kept.lost == frozenset()
        house.clock.now += 1_000
        assert kept.lost == {item.token}


def test_the_thread_goes_on_after_an_error(house, work, monkeypatch):
    work.insert("k", {"data": 1})
    (item,) = work.claim()
    rounds, asked = threading.Semaphore(0), work.refresh

    def refuse_once(item: WorkItem) -> WorkItem:
        monkeypatch.setattr(work, "refresh", asked)
        rounds.release()
        raise OSError("no host answers")

    monkeypatch.setattr(work, "refresh", refuse_once)
    before = house.stored("k").start
    house.clock.now += 5_000
    with KeptClaims(work, [item], every=0.01):
        assert rounds.acquire(timeout=10)
        wait_until(lambda: house.stored("k").start != before, 10, "a second refresh")
    assert house.stored("k").start == before + 5_000


def test_all_of_it_without_blocking(house):
    async def life() -> list[str]:
        async with AsyncWork(Work.of_journal(house.another())) as work:
            said = [await work.insert("k", {"data": 1}), await work.insert("k", {"data": 2})]
            (item,) = await work.claim()
            item = await work.refresh(item)
            said.append(await work.snooze(item, timedelta()))
            (item,) = await work.claim()
            said.append(await work.release(item))
            (item,) = await work.claim()
            said.append(await work.fail(item, "no route"))
            (letter,) = await work.dead()
            said.append(await work.redrive(letter))
            assert (await work.get("k")).status is WorkStatus.WAITING
            assert len(await work.entries()) == (await work.stats()).waiting == 1
            (item,) = await work.claim()
            said.append(await work.done(item))
            said.append(await work.cancel("k"))
            return said

    assert asyncio.run(life()) == [
        "inserted",
        "merged",
        "snoozed",
        "released",
        "dead",
        "inserted",
        "done",
        "gone",
    ]
