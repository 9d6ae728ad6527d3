"""What is due gets done: done, failed or given back, whatever ends the work."""

from typing import Any

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

from tidemark.work.claimed_item import WorkItem
from tidemark.work.client import Work
from tidemark.work.drain import Stop, Stopped, drain

pytestmark = pytest.mark.unit


@pytest.fixture
def house() -> WorkWorld:
    return WorkWorld(memory_stores(), given_declaration(max_failures=2, time_limit="60s"))


@pytest.fixture
def work(house: WorkWorld) -> Work:
    return Work.of_journal(house.another())


def given_entries(work: Any, *keys: str) -> None:
    for priority, key in enumerate(keys):
        work.insert(key, {"data": 1}, priority=priority)


def test_what_is_done_is_gone_and_what_fails_comes_back(house: WorkWorld, work: Any) -> None:
    def handler(item: Any) -> None:
        if item.key == "bad":
            raise ValueError("no route")

    given_entries(work, "good", "bad", "fine")
    assert drain(work, handler, 10, print) == {"done": 2, "failed": 1, "dead": 0, "lost": 0}
    assert (house.stored("good"), house.stored("fine")) == (None, None)
    assert house.stored("bad").error == "ValueError: no route"


def test_a_task_that_is_stopped_gives_back_what_it_has_not_done(house: WorkWorld, work: Any) -> None:
    def handler(item: Any) -> None:
        if item.key == "second":
            raise KeyboardInterrupt

    given_entries(work, "first", "second", "third")
    with pytest.raises(KeyboardInterrupt):
        drain(work, handler, 10, print)
    assert house.stored("first") is None
    for key in ("second", "third"):
        assert house.stored(key).is_waiting
        assert house.stored(key).failures == 0


def test_an_entry_that_took_too_long_is_lost_and_no_other(house: WorkWorld, work: Any) -> None:
    def handler(item: Any) -> None:
        house.clock.now = MORNING + 62_000

    given_entries(work, "slow")
    assert drain(work, handler, 10, print)["lost"] == 1
    assert not house.stored("slow").is_waiting


def test_a_wish_to_stop_interrupts_the_handler_and_gives_back_the_rest(house: WorkWorld, work: Work) -> None:
    stop, seen = Stop(), []

    def handler(item: Any) -> None:
        seen.append(item.key)
        if item.key == "second":
            stop.ask()
            seen.append("not reached")

    given_entries(work, "first", "second", "third")
    with pytest.raises(Stopped):
        drain(work, handler, 10, print, stop)
    assert seen == ["first", "second"]
    assert [house.stored(key).failures for key in ("second", "third")] == [0, 0]
    assert [house.stored(key).is_waiting for key in ("second", "third")] == [True, True]


def test_a_wish_to_stop_leaves_what_is_being_written_alone(
    house: WorkWorld, work: Work, monkeypatch: Any
) -> None:
    stop, done = Stop(), work.done

    def done_while_asked(item: WorkItem) -> Any:
        stop.ask()
        return done(item)

    monkeypatch.setattr(work, "done", done_while_asked)
    given_entries(work, "first", "second")
    with pytest.raises(Stopped):
        drain(work, lambda item: None, 10, print, stop)
    assert house.stored("first") is None
    assert house.stored("second").is_waiting


def test_one_that_cannot_be_given_back_holds_up_no_other(
    house: WorkWorld, work: Work, monkeypatch: Any
) -> None:
    release, said = work.release, []

    def refuse_second(item: WorkItem) -> Any:
        if item.key == "second":
            raise OSError("no host answers")
        return release(item)

    def handler(item: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(work, "release", refuse_second)
    given_entries(work, "first", "second", "third")
    with pytest.raises(KeyboardInterrupt):
        drain(work, handler, 10, lambda *words: said.append(words[0] % words[1:]))
    assert [house.stored(key).is_waiting for key in ("first", "second", "third")] == [True, False, True]
    assert said == [f"{work.name}: second was not given back: no host answers"]
