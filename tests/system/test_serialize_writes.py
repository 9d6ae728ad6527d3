"""Many changes at once, asked of an Airflow on SQLite: every one is made, and none waits for a time-out."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytestmark = pytest.mark.system

DAG_ID = "clustered.compact_offsets"
"""A DAG that stays paused: its runs wait."""
PEOPLE, EACH = 8, 5


def end(airflow: Any, run_id: str) -> None:
    path = f"/dags/{DAG_ID}/dagRuns/{run_id}"
    airflow.request("PATCH", path, f"end {run_id}", json={"state": "failed"})


@pytest.fixture
def triggered(services: Any) -> Any:
    """Runs of several people who press the button at the same moment."""
    airflow = services.airflow
    with ThreadPoolExecutor(PEOPLE) as people:
        runs = list(people.map(lambda _: airflow.trigger(DAG_ID), range(PEOPLE * EACH)))
        yield runs
        list(people.map(lambda run: end(airflow, run), runs))


def test_runs_that_are_triggered_at_the_same_moment_are_all_there(services: Any, triggered: Any) -> None:
    assert set(services.airflow.active_runs(DAG_ID)) == set(triggered)
    assert len(set(triggered)) == PEOPLE * EACH
