"""What tasks do with a journal: wait for it, give claims back; with Airflow's own classes around it."""

import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

pytestmark = pytest.mark.system


@pytest.fixture
def house() -> WorkWorld:
    return WorkWorld(memory_stores(), given_declaration(max_failures=2, time_limit="60s"))


@pytest.fixture
def work(house: WorkWorld, dag_bag: Any) -> Any:
    from tidemark.work.client import Work

    return Work.of_journal(house.another())


def given_entries(work: Any, *keys: str) -> None:
    for priority, key in enumerate(keys):
        work.insert(key, {"data": 1}, priority=priority)


def test_a_task_that_is_terminated_gives_back_what_it_has_not_done(
    house: WorkWorld, work: Any, monkeypatch: Any
) -> None:
    """As Airflow's task runner does it: the handler of SIGTERM calls ``on_kill`` and nothing else."""
    from tidemark.work.drain import Stopped
    from tidemark_airflow.operators import claim_work as module

    def handler(item: Any) -> None:
        if item.key == "second":
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError("the signal was to end this")

    given_entries(work, "first", "second", "third")
    monkeypatch.setattr(module, "open_work", lambda journal, owner: work)
    task = module.ClaimWork(task_id="do", journal="pages", handler=handler)
    before = signal.signal(signal.SIGTERM, lambda number, frame: task.on_kill())
    try:
        with pytest.raises(Stopped):
            task.execute({"ti": SimpleNamespace(dag_id="d", task_id="do", run_id="r")})
    finally:
        signal.signal(signal.SIGTERM, before)
    assert house.stored("first") is None
    assert [house.stored(key).is_waiting for key in ("second", "third")] == [True, True]
    task.on_kill()


def test_triggers_say_how_to_make_them_again(dag_bag: Any) -> None:
    from tidemark_airflow.triggers.work_ready import WorkReadyTrigger

    name, keys = WorkReadyTrigger("pages", 5.0).serialize()
    path = "tidemark_airflow.triggers.work_ready.WorkReadyTrigger"
    assert (name, keys) == (path, {"journal": "pages", "every": 5.0})


def test_the_trigger_fires_when_something_is_due(house: WorkWorld, work: Any, monkeypatch: Any) -> None:
    import asyncio

    from tidemark_airflow.triggers import work_ready as module

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
