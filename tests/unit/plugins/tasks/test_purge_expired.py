"""The tasks of a purge after its plan."""

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.airflow_context import given_context

from tidemark.errors import TidemarkError

pytestmark = pytest.mark.unit

PLAN = {"days": {"2026-11-16": 2}, "total": 2}


class Overtaken(TidemarkError):
    needs_person = True


@pytest.fixture
def tasks():
    from tidemark_airflow.tasks import purge_expired

    return purge_expired


def decide(tasks: Any, run_type: str, plan: dict[str, Any] = PLAN, **params: Any) -> list[str]:
    context = given_context(run_type, **{"dry_run": True, "approve": False, **params})
    return tasks.decide.function("orders", "journal.", plan, **context)


@pytest.mark.parametrize(
    ("run_type", "params", "next_tasks"),
    [
        ("manual", {}, []),
        ("backfill", {}, []),
        ("manual", {"dry_run": False}, ["journal.purge"]),
        ("backfill", {"dry_run": False}, ["journal.purge"]),
        ("scheduled", {}, ["journal.purge"]),
        ("manual", {"dry_run": False, "approve": True}, ["journal.approve"]),
    ],
)
def test_the_kind_of_the_run_decides(tasks, run_type, params, next_tasks):
    assert decide(tasks, run_type, **params) == next_tasks


@pytest.mark.parametrize(
    ("plan", "next_tasks"),
    [({"days": {}, "total": 0}, []), ({"days": {"2026-11-16": 0}, "total": 0}, ["journal.report"])],
)
def test_a_run_without_expired_entities_is_reported_once_a_day_has_ended(tasks, plan, next_tasks):
    assert decide(tasks, "scheduled", plan) == next_tasks


@pytest.fixture
def run(tasks, monkeypatch):
    """The run that the tasks open; keeps its calls."""
    calls: list[Any] = []

    def purge() -> Any:
        calls.append("purge")
        return SimpleNamespace(sent=[1, 2], spared=[3])

    run = SimpleNamespace(
        calls=calls, discard=lambda: calls.append("discard"), open_days=calls.append, purge=purge
    )
    monkeypatch.setattr(tasks, "open_run", lambda *given: run)
    return run


@pytest.mark.parametrize(
    ("chosen", "goes_on", "calls"), [("Approve", True, []), ("Reject", False, ["discard"])]
)
def test_a_rejected_plan_is_discarded(tasks, run, chosen, goes_on, calls):
    follow = tasks.follow_approval.function
    assert follow("orders", "journal", {"chosen_options": [chosen]}, **given_context()) is goes_on
    assert run.calls == calls


def test_days_are_recorded_before_the_first_purge(tasks, run):
    result = tasks.purge.function("orders", "journal", PLAN, **given_context())
    assert result == {"purged": 2, "left_alone": 1}
    assert run.calls == [[date(2026, 11, 16)], "purge"]


def test_a_purge_that_overtook_an_append_fails_without_retries(tasks, run):
    from airflow.sdk.exceptions import AirflowFailException

    def report(days: Any) -> Any:
        raise Overtaken("id 7 was purged with the rest")

    run.report = report
    with pytest.raises(AirflowFailException, match="id 7 was purged"):
        tasks.report.function("orders", "journal", PLAN, **given_context())


def test_the_name_in_templates_is_the_name_of_the_run(tasks):
    from jinja2 import Template

    context = given_context()
    name = Template(tasks.RUN % "journal").render(dag=context["dag"], run_id=context["run_id"])
    assert name == "orders.dag run-1 journal"
