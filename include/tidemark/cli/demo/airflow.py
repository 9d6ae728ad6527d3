"""The DAG runs of ``make demo``: waiting for one, why one failed, and the purge of an expired order."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.errors import TidemarkError
from tidemark.expiry.report import report_lines

PURGE_DAG = "orders.purge_expired"
FINISHED = ("success", "failed")
WAITS = ("deferred", *FINISHED, "skipped", "upstream_failed")
SECONDS = 300.0


class DemoFailed(TidemarkError):
    """The demo failed."""


def wait(condition: Callable[[], object], seconds: float, otherwise: str) -> None:
    """Wait until the condition holds; raises ``DemoFailed`` with ``otherwise`` after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise DemoFailed(f"{otherwise} after {seconds:.0f} s. See: make status")
        time.sleep(0.2)


def task_failures(api: AirflowApi, dag_id: str, run_id: str) -> Iterator[str]:
    """The last lines of the log of every failed task of a run."""
    for task in api.tasks(dag_id, run_id):
        if task.state == "failed":
            lines = [line for line in api.task_log(dag_id, run_id, task.task_id) if line.strip()]
            yield f"Task {task.task_id} of {run_id} failed:"
            yield from (f"  {line}" for line in lines[-8:])


def show_expiry(api: AirflowApi, replicate: Callable[[], object], show: Callable[..., Any]) -> None:
    """Run the DAG for an expired order, replicate the purge that it sends, and print its report."""
    run_id = api.trigger(PURGE_DAG, {"dry_run": False})
    show(f"\nOne order expired yesterday. {PURGE_DAG}, run {run_id}:")
    wait(
        lambda: task_state(api, PURGE_DAG, run_id, "wait_for_replication") in WAITS,
        SECONDS,
        "no purge was sent",
    )
    plan = api.returned(PURGE_DAG, run_id, "plan")
    for one in plan["first"]:
        show(f"  {one['key']} expired on {one['day']}: a purge was sent to {one['topic']}/{one['partition']}")
    if task_state(api, PURGE_DAG, run_id, "wait_for_replication") == "deferred":
        show("  it waits until replication has passed the purge")
        replicate()
    wait(lambda: api.run(PURGE_DAG, run_id)["state"] in FINISHED, SECONDS, f"{run_id} has not ended")
    if api.run(PURGE_DAG, run_id)["state"] == "failed":
        raise DemoFailed("\n".join(task_failures(api, PURGE_DAG, run_id)))
    show()
    for line in report_lines(api.returned(PURGE_DAG, run_id, "report")):
        show(f"  {line}")
    show("  .venv/bin/tidemark journal expired orders   expired orders that are still there: none now")


def run_until(api: AirflowApi, dag_id: str, until: str, conf: dict[str, Any]) -> str:
    """Run a DAG until one of its tasks has succeeded; returns the run's id. Raises ``DemoFailed``."""
    if api.is_paused(dag_id):
        api.unpause(dag_id)
    run_id = api.trigger(dag_id, conf)

    def has_ended() -> bool:
        return task_state(api, dag_id, run_id, until) == "success" or (
            api.run(dag_id, run_id)["state"] in FINISHED
        )

    wait(has_ended, SECONDS, f"{run_id} has not come to {until}")
    if task_state(api, dag_id, run_id, until) != "success":
        raise DemoFailed("\n".join(task_failures(api, dag_id, run_id)) or f"{run_id} did not {until}")
    return run_id


def task_state(api: AirflowApi, dag_id: str, run_id: str, task_id: str) -> str | None:
    """The state of a task of a run; None where it has none yet."""
    return next((task.state for task in api.tasks(dag_id, run_id) if task.task_id == task_id), None)
