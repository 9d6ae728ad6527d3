"""The plan of a purge: which days, in the task or with Spark, and nothing recorded in a dry run."""

from datetime import date
from types import SimpleNamespace

import pytest
from tests.support.airflow_context import given_context

pytestmark = pytest.mark.unit

DAYS = (date(2026, 11, 15), date(2026, 11, 16))


@pytest.fixture
def plan(monkeypatch):
    """Runs the task over so many entities; its result, the calls of the run and the arguments of Spark."""
    from tidemark_airflow.operators import plan_purge
    from tidemark_airflow.operators.spark_app import SparkAppOperator

    seen = SimpleNamespace(keeps=None, planned=None, arguments=None)

    def find_days(run, context, *, keeps):
        seen.keeps = keeps
        return DAYS

    def execute(self, context):
        seen.arguments = self.application_args
        return {"total": 9, "table": ["a line"]}

    monkeypatch.setattr(plan_purge, "find_days", find_days)
    monkeypatch.setattr(plan_purge, "IN_PROCESS", 3)
    monkeypatch.setattr(SparkAppOperator, "execute", execute)

    def run(run_type, entities, **params):
        def planned(days, found, ceiling):
            seen.planned = (len(found), ceiling)

        found = SimpleNamespace(to_lines=lambda: ["a line"], to_dict=lambda: {"total": entities})
        opened = SimpleNamespace(
            run="orders.dag run-1 journal",
            find=lambda days, limit: list(range(min(entities, limit))),
            look=lambda days, found_: found,
            plan=planned,
        )
        monkeypatch.setattr(plan_purge, "open_run", lambda *given: opened)
        task = plan_purge.PlanPurgeOperator(task_id="plan", pipeline="orders", writer="journal", ceiling=100)
        return task.execute(given_context(run_type, **{"max_purges": None, "dry_run": True, **params}))

    run.seen = seen
    return run


@pytest.mark.parametrize("run_type", ["manual", "backfill"])
def test_a_dry_run_records_nothing(plan, run_type):
    assert plan(run_type, 2) == {"total": 2}
    assert (plan.seen.keeps, plan.seen.planned) == (False, None)


@pytest.mark.parametrize(
    ("run_type", "params", "ceiling"),
    [
        ("scheduled", {}, 100),
        ("manual", {"dry_run": False, "max_purges": 5}, 5),
        ("backfill", {"dry_run": False}, 100),
    ],
)
def test_a_real_run_records_its_plan_under_its_limit(plan, run_type, params, ceiling):
    plan(run_type, 2, **params)
    assert (plan.seen.keeps, plan.seen.planned) == (True, (2, ceiling))


@pytest.mark.parametrize(("run_type", "ends"), [("manual", ["--look"]), ("scheduled", [])])
def test_many_entities_are_found_with_spark(plan, run_type, ends):
    assert plan(run_type, 4) == {"total": 9}
    assert plan.seen.arguments == [
        *("--pipeline", "orders", "--writer", "journal", "--run", "orders.dag run-1 journal"),
        *("--ceiling", "100", "--days", "2026-11-15,2026-11-16", *ends),
    ]


def test_the_name_of_a_run_says_where_its_purges_come_from(monkeypatch):
    from tidemark.app import purge
    from tidemark_airflow.operators import plan_purge

    monkeypatch.setattr(plan_purge, "open_pipeline", lambda name: name)
    monkeypatch.setattr(purge, "open_run", lambda *given: given)
    opened = plan_purge.open_run("orders", "journal", given_context())
    assert opened == ("orders", "journal", "orders.dag run-1 journal")
