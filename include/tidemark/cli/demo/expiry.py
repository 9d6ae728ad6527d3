"""The part of ``make demo`` about expiry: one order whose time is over leaves through the front door."""

from collections.abc import Callable
from typing import Any

from tidemark.cli.demo.airflow import DemoFailed, task_failures, wait
from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.expiry.report import report_lines

PURGE_DAG = "orders.purge_expired"
FINISHED = ("success", "failed")
WAITS = ("deferred", *FINISHED, "skipped", "upstream_failed")
SECONDS = 300.0


def show_expiry(api: AirflowApi, replicate: Callable[[], object], show: Callable[..., Any]) -> None:
    """Run the DAG, replicate its purge, and say what became of the order."""
    run_id = api.trigger(PURGE_DAG, {"dry_run": False})
    show(f"\nOne order expired yesterday. {PURGE_DAG}, run {run_id}:")
    wait(lambda: _state(api, run_id, "wait_for_replication") in WAITS, SECONDS, "no purge was sent")
    plan = api.returned(PURGE_DAG, run_id, "plan")
    for one in plan["first"]:
        show(f"  {one['key']} expired on {one['day']}: a purge was sent to {one['topic']}/{one['partition']}")
    if _state(api, run_id, "wait_for_replication") == "deferred":
        show("  it waits until replication has passed the purge")
        replicate()
    wait(lambda: api.run(PURGE_DAG, run_id)["state"] in FINISHED, SECONDS, f"{run_id} has not ended")
    if api.run(PURGE_DAG, run_id)["state"] == "failed":
        raise DemoFailed("\n".join(task_failures(api, PURGE_DAG, run_id)))
    show()
    for line in report_lines(api.returned(PURGE_DAG, run_id, "report")):
        show(f"  {line}")
    show("  .venv/bin/tidemark journal expired orders   who is over time and still there: nobody now")


def _state(api: AirflowApi, run_id: str, task_id: str) -> str | None:
    return next((task.state for task in api.tasks(PURGE_DAG, run_id) if task.task_id == task_id), None)
