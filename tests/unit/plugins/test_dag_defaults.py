"""What all DAGs share."""

import pytest

pytestmark = pytest.mark.unit


def test_a_schedule_covers_intervals_and_none_stays_none():
    from tidemark_airflow.dag_defaults import data_intervals

    assert data_intervals(None) is None
    assert type(data_intervals("@daily", "Europe/Prague")).__name__ == "CronDataIntervalTimetable"


def test_a_plan_is_dry_and_needs_no_approval_unless_asked_for():
    from tidemark_airflow.dag_defaults import plan_params

    assert {name: param.resolve() for name, param in plan_params().items()} == {
        "dry_run": True,
        "approve": False,
    }


def test_every_task_is_retried_and_limited():
    from tidemark_airflow.dag_defaults import task_defaults

    defaults = task_defaults()
    assert (defaults["retries"], defaults["execution_timeout"].total_seconds()) == (2, 6 * 3600)
