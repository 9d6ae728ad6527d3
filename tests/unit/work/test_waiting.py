"""Item 8: a worker is not kept waiting while something is due, and not kept busy while nothing is."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

from tidemark.work.client import Work
from tidemark.work.model.entry import Hint
from tidemark.work.model.waiting import seconds_to_wait
from tidemark.work.queue.journal import WorkJournal
from tidemark.work.store.due import MemoryDue

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"looks": []}, 300.0),
        ({"looks": [None, MORNING + 30_000]}, 30.0),
        ({"looks": [MORNING + 30_000, MORNING + 10_000]}, 10.0),
        ({"looks": [MORNING + 30_000], "seconds": 3}, 3),
        ({"looks": [MORNING - 5]}, 0.0),
        ({"looks": [], "seconds": -1}, 0.0),
        ({"looks": [], "is_paused": True}, 5.0),
        ({"looks": [], "is_busy": True}, 0.2),
        ({"looks": [MORNING + 100], "is_busy": True}, 0.1),
    ],
)
def test_how_long_to_wait(given: dict[str, Any], seconds: float) -> None:
    assert seconds_to_wait(given.pop("seconds", 10**9), MORNING, **given) == seconds


class Bell:
    """Kafka's part: counts who waits and for how long; ``meanwhile`` happens as listening begins."""

    def __init__(self, meanwhile: Any = None) -> None:
        self.waits: list[float] = []
        self.rings: list[str] = []
        self._meanwhile = meanwhile

    def ring(self, key: str) -> None:
        self.rings.append(key)

    def listen(self, seconds: float) -> bool:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
            return True
        return False

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return False

    def close(self) -> None:
        pass


@pytest.fixture
def house() -> WorkWorld:
    return WorkWorld(memory_stores(), given_declaration(time_limit="10m"))


def given_work(house: WorkWorld, bell: Bell | None = None) -> Work:
    """As the documentation opens one: with all its caches."""
    return Work.of_journal(WorkJournal(house.parts), bell, owner="me")


def drained(house: WorkWorld, work: Work, waits: list[float]) -> int:
    """The loop of the documentation until it sleeps for the first time; how many entries it did before."""
    done = 0
    while not waits:
        for item in work.claim(10):
            work.done(item)
            done += 1
        work.wait(sleep=waits.append)
        house.clock.now += 1
    return done


def test_i08_the_loop_of_the_page_does_not_sleep_while_something_is_due(house):
    work, slept = given_work(house), []
    for number in range(40):
        work.insert(f"k{number}", {"data": number})
    assert drained(house, work, slept) == 40
    assert slept == [300.0]


def test_i08_nor_does_it_listen_for_a_wake_up_then(house):
    bell = Bell()
    work = given_work(house, bell)
    for number in range(40):
        work.insert(f"k{number}", {"data": number})
    assert drained(house, work, bell.waits) == 40
    assert bell.waits == [300.0]


def test_i08_another_process_finds_at_once_what_is_due(house):
    given_work(house).insert("k", {"data": 1})
    slept: list[float] = []
    given_work(house).wait(sleep=slept.append)
    assert slept == []


def test_i08_a_process_that_only_looks_sleeps_once_nothing_is_due(house):
    """A trigger never claims: what others have done must not keep it busy."""
    worker, looking, slept = given_work(house), given_work(house), []
    for number in range(120):
        worker.insert(f"k{number}", {"data": number})
    assert looking.is_ready()
    assert drained(house, worker, []) == 120
    assert not looking.is_ready()
    looking.wait(30, sleep=slept.append)
    assert slept == [30]


def test_i08_what_others_hold_is_not_due_until_it_lapses(house):
    worker, looking, slept = given_work(house), given_work(house), []
    worker.insert("k", {"data": 1})
    assert len(worker.claim()) == 1
    looking.wait(sleep=slept.append)
    assert slept == [300.0]
    house.clock.now += 601_000
    looking.wait(sleep=slept.append)
    assert slept == [300.0], "the claim has lapsed, so that it is due"


def test_i08_a_hint_that_turned_up_behind_those_that_were_read_is_found(house):
    work, slept = given_work(house), []
    work.insert("later", {"data": 1})
    work.done(*work.claim())
    house.clock.now += 60
    work.insert("read", {"data": 1})
    work.done(*work.claim())
    slower_clock = replace(house.parts, clock=lambda: house.clock.now - 30, new_id=lambda: "of another")
    Work.of_journal(WorkJournal(slower_clock)).insert("behind", {"data": 1})
    work.wait(sleep=slept.append)
    assert slept == []
    assert [item.key for item in work.claim()] == ["behind"]


def test_i08_an_insert_between_the_look_and_the_listening_is_not_slept_over(house):
    other = given_work(house)
    bell = Bell(meanwhile=lambda: other.insert("k", {"data": 1}))
    given_work(house, bell).wait()
    assert bell.waits == []


def test_i08_a_paused_journal_keeps_no_worker_busy_and_is_looked_at_again(house):
    work, slept = given_work(house), []
    work.insert("k", {"data": 1})
    work.pause("ann", "maintenance")
    work.wait(sleep=slept.append)
    assert slept == [5.0]
    assert not work.is_ready()
    work.resume("ann", "over")
    work.wait(sleep=slept.append)
    assert slept == [5.0]


def test_a_resume_wakes_those_that_wait(house):
    bell = Bell()
    given_work(house, bell).resume("ann", "over")
    assert bell.rings == [""]


def test_i08_while_another_thread_claims_a_wait_is_short(house):
    work, slept = given_work(house), []
    work.insert("k", {"data": 1})
    journal = work._journal
    hints = journal._take(1, None, set(), house.parts.registry.read())
    work.wait(sleep=slept.append)
    assert slept == [0.2]
    journal._lanes.put_back(hints[0])
    work.wait(sleep=slept.append)
    assert slept == [0.2]


def test_i08_a_hint_whose_entry_is_under_way_is_looked_at_soon(house):
    work, slept = given_work(house), []
    work.insert("k", {"data": 1})
    work.done(*work.claim())
    hint = Hint("h", "coming", "2026-11-17T10", 0, 180, MORNING, house.clock(), house.clock())
    due = house.parts.due
    assert isinstance(due, MemoryDue)
    due.put(hint)
    work.wait(sleep=slept.append)
    assert slept == [0.02]


def test_many_threads_of_one_process_do_everything_and_none_sleeps_it_out(house):
    work, done, lock = given_work(house), [], threading.Lock()
    for number in range(60):
        work.insert(f"k{number}", {"data": number})

    def worker() -> None:
        naps: list[float] = []
        while len(naps) < 50 and max(naps, default=0) < 1:
            for item in work.claim(3):
                work.done(item)
                with lock:
                    done.append(item.key)
            work.wait(sleep=naps.append)

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(done) == sorted(f"k{number}" for number in range(60))


def test_a_date_in_the_future_is_waited_for(house):
    work, slept = given_work(house), []
    work.insert("k", {"data": 1}, process=timedelta(seconds=7))
    work.wait(sleep=slept.append)
    assert slept == [7.0]
