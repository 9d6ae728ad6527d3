"""The context that Airflow gives to a task, as far as Tidemark's tasks use it."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any


class TaskInstance:
    """A task instance with results of other tasks, by task id; keeps what is pushed."""

    dag_id, task_id, run_id = "orders.dag", "task", "run-1"

    def __init__(self, results: dict[str, Any] | None = None) -> None:
        self.results = results or {}
        self.pushed: dict[str, Any] = {}

    def xcom_pull(self, task_ids: str, key: str = "return_value") -> Any:
        return self.results.get(task_ids)

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


class OutletEvents(dict[Any, Any]):
    """The events of a task's outlets, by asset."""

    def __missing__(self, asset: Any) -> Any:
        return self.setdefault(asset, SimpleNamespace(extra=None))


def given_context(run_type: str = "manual", results: dict[str, Any] | None = None, **params: Any) -> Any:
    """A run of this type, with these parameters and these results of earlier tasks."""
    dag_run = SimpleNamespace(
        run_type=run_type,
        start_date=datetime(2026, 11, 17, 10, tzinfo=UTC),
        data_interval_start=datetime(2026, 11, 16, tzinfo=UTC),
        data_interval_end=datetime(2026, 11, 17, tzinfo=UTC),
        triggering_user_name="ann",
        conf={},
    )
    return {
        "dag": SimpleNamespace(dag_id="orders.dag"),
        "dag_run": dag_run,
        "run_id": "run-1",
        "params": params,
        "ti": TaskInstance(results),
        "outlet_events": OutletEvents(),
    }
