"""Claiming entries in a task: done, failed and given back."""

import pytest
from tests.support.airflow_context import given_context
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

from tidemark.work.client import Work

pytestmark = pytest.mark.unit


@pytest.fixture
def journal():
    return WorkWorld(memory_stores(), given_declaration(max_failures=2, time_limit="60s"))


@pytest.fixture
def claim(journal, monkeypatch):
    """Runs the task with a handler; its result and the owners of its claims."""
    from tidemark_airflow.operators import claim_work

    owners = []

    def open_work(name, owner):
        owners.append(owner)
        return Work.of_journal(journal.another())

    monkeypatch.setattr(claim_work, "open_work", open_work)

    def run(handler, limit="100"):
        task = claim_work.ClaimWork(task_id="do", journal="pages", handler=handler, limit=limit)
        return task.execute(given_context())

    run.owners = owners
    return run


def given_entries(journal, *keys):
    work = Work.of_journal(journal.another())
    for priority, key in enumerate(keys):
        work.insert(key, {"data": 1}, priority=priority)


def test_an_entry_is_done_or_failed_on_its_own(journal, claim):
    def handler(item):
        if item.key == "bad":
            raise ValueError("no such page")

    given_entries(journal, "good", "bad", "better")
    result = claim(handler)
    assert (result["done"], result["failed"]) == (2, 1)
    assert [journal.stored(key) is None for key in ("good", "bad", "better")] == [True, False, True]
    assert claim.owners == ["orders.dag/task/run-1"]


def test_no_more_than_the_limit_are_claimed(journal, claim):
    given_entries(journal, "first", "second", "third")
    assert claim(lambda item: None, limit="2")["done"] == 2
    assert journal.stored("third").is_waiting


def test_a_task_that_was_never_started_may_be_killed():
    from tidemark_airflow.operators.claim_work import ClaimWork

    ClaimWork(task_id="do", journal="pages", handler=print).on_kill()
