"""What tasks do with claims: done, failed, given back; in memory, with Airflow's own classes around it."""

from typing import Any

import pytest
from tests.contract.work_house import MORNING, House, given_declaration, memory_stores

pytestmark = pytest.mark.system


@pytest.fixture
def house() -> House:
    return House(memory_stores(), given_declaration(max_failures=2, time_limit="60s"))


@pytest.fixture
def work(house: House, dag_bag: Any) -> Any:
    from tidemark.work.client import Work

    return Work.of_journal(house.another())


def given_entries(work: Any, *keys: str) -> None:
    for priority, key in enumerate(keys):
        work.insert(key, {"data": 1}, priority=priority)


def test_what_is_done_is_gone_and_what_fails_comes_back(house: House, work: Any) -> None:
    from tidemark_airflow.work import drain

    def handler(item: Any) -> None:
        if item.key == "bad":
            raise ValueError("no route")

    given_entries(work, "good", "bad", "fine")
    assert drain(work, handler, 10, print) == {"done": 2, "failed": 1, "dead": 0, "lost": 0}
    assert (house.stored("good"), house.stored("fine")) == (None, None)
    assert house.stored("bad").error == "ValueError: no route"


def test_a_task_that_is_stopped_gives_back_what_it_has_not_done(house: House, work: Any) -> None:
    from tidemark_airflow.work import drain

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


def test_an_entry_that_took_too_long_is_lost_and_nobody_else_s(house: House, work: Any) -> None:
    from tidemark_airflow.work import drain

    def handler(item: Any) -> None:
        house.clock.now = MORNING + 62_000

    given_entries(work, "slow")
    assert drain(work, handler, 10, print)["lost"] == 1
    assert not house.stored("slow").is_waiting


def test_triggers_say_how_to_make_them_again(dag_bag: Any) -> None:
    from tidemark_airflow.work import WorkReadyTrigger

    name, keys = WorkReadyTrigger("pages", 5.0).serialize()
    assert (name, keys) == ("tidemark_airflow.work.WorkReadyTrigger", {"journal": "pages", "every": 5.0})


def test_the_trigger_fires_when_something_is_due(house: House, work: Any, monkeypatch: Any) -> None:
    import asyncio

    from tidemark_airflow import work as module

    def pass_the_time(self: Any, seconds: float) -> None:
        house.clock.now += 10_000

    given_entries(work, "k")
    house.clock.now = MORNING - 25_000
    monkeypatch.setattr(module, "open_work", lambda journal: work)
    monkeypatch.setattr(type(work), "wait", pass_the_time)

    async def first_event() -> Any:
        async for event in module.WorkReadyTrigger("pages").run():
            return event.payload

    assert asyncio.run(first_event()) == {"journal": "pages"}
    assert house.clock() >= MORNING
