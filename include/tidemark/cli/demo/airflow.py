"""What the parts of ``make demo`` that use Airflow share: waiting, and why a run failed."""

import time
from collections.abc import Callable, Iterator

from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.errors import TidemarkError


class DemoFailed(TidemarkError):
    """The demo did not get to its end."""


def wait(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Wait until it is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise DemoFailed(f"{otherwise} after {seconds:.0f} s. See: make status")
        time.sleep(0.5)


def task_failures(api: AirflowApi, dag_id: str, run_id: str) -> Iterator[str]:
    """The last lines of every task of a run that failed."""
    for task in api.tasks(dag_id, run_id):
        if task.state == "failed":
            lines = [line for line in api.task_log(dag_id, run_id, task.task_id) if line.strip()]
            yield f"Task {task.task_id} of {run_id} failed:"
            yield from (f"  {line}" for line in lines[-8:])
