"""The plan of a compaction: in the task where there is nothing to read, else with Spark."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from tests.support.airflow_context import given_context

from tidemark.errors import TidemarkError

pytestmark = pytest.mark.unit


class Refused(TidemarkError):
    needs_person = True


@pytest.fixture
def plan(monkeypatch):
    """Runs the task over a compaction; its result, the arguments of Spark and the calls in the task."""
    from tidemark.compaction import report
    from tidemark_airflow.operators import plan_compaction
    from tidemark_airflow.operators.spark_app import SparkAppOperator

    calls = []

    def execute(self, context):
        calls.append(self.application_args[-2:])
        return {"nothing_to_do": False, "table": ["a line"]}

    monkeypatch.setattr(SparkAppOperator, "execute", execute)
    monkeypatch.setattr(report, "plan_document", lambda plan: {"plan": plan})
    monkeypatch.setattr(report, "plan_lines", lambda plan: [f"the plan is {plan}"])

    def run(run_type, idle, error=None, is_optional=False, **params):
        def is_idle():
            if error:
                raise error
            return idle

        compaction = SimpleNamespace(
            is_idle=is_idle,
            look=lambda: calls.append("look") or "looked",
            plan=lambda holder: calls.append(("plan", holder)) or "planned",
            recording_refusals=lambda holder: nullcontext(),
        )
        monkeypatch.setattr(plan_compaction, "open_compaction", lambda pipeline, policy: compaction)
        task = plan_compaction.PlanCompactionOperator(
            task_id="plan", pipeline="orders", app="compact_log", is_optional=is_optional
        )
        return task.execute(given_context(run_type, **{"policy": None, "dry_run": True, **params}))

    run.calls = calls
    return run


@pytest.mark.parametrize(
    ("run_type", "params", "step"),
    [
        ("manual", {}, "look"),
        ("backfill", {}, "look"),
        ("manual", {"dry_run": False}, "plan"),
        ("scheduled", {}, "plan"),
    ],
)
def test_spark_only_looks_in_a_dry_run(plan, run_type, params, step):
    assert plan(run_type, idle=False, **params) == {"nothing_to_do": False}
    assert plan.calls == [["--step", step]]


@pytest.mark.parametrize(
    ("run_type", "called", "result"),
    [("manual", "look", "looked"), ("scheduled", ("plan", "orders.dag run-1"), "planned")],
)
def test_a_log_without_messages_to_read_needs_no_spark(plan, run_type, called, result):
    assert plan(run_type, idle=True) == {"plan": result}
    assert plan.calls == [called]


def test_an_error_that_needs_a_person_is_not_retried(plan):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="a file is missing"):
        plan("scheduled", idle=True, error=Refused("a file is missing"))


def test_where_the_policy_keeps_everything_only_a_run_with_another_one_makes_a_plan(plan):
    from airflow.sdk.exceptions import AirflowSkipException

    with pytest.raises(AirflowSkipException, match="keeps every message"):
        plan("scheduled", idle=True, is_optional=True)
    assert plan("manual", idle=True, is_optional=True, policy="latest") == {"plan": "looked"}
