"""Whole runs of ``replicate`` on the services that ``make up`` starts, beside their delivery alone.

Run by ``make bench``; prints tables for bench/README.md. Every load gets services of its own with the options
of ``make up``, Airflow and the Connect server among them, and nothing is warmed up: the run is the first work
that they do. Its delivery is then repeated alone, and the ceiling measured, on the same services. An argument
chooses one load by its number of records.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import journal_ceiling  # isort: skip
from journal_job import deliver_bindings  # isort: skip
from journal_load import Load, fill_topic, make_log  # isort: skip
from services import Own, own_services  # isort: skip
from tidemark.connections import SparkConnection
from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.embedded.services.spark_connect import HOST, token_file
from tidemark.embedded.state import SparkMode
from tidemark.spark.engine import open_session

LOADS = (Load(appends=300_000, entities=30_000), Load(appends=1_000_000, entities=100_000))
GOALS = {300_000: 10_000, 1_000_000: 15_000}
"""Records a second of a whole run."""
DAG_ID = "bench.replicate"
PIPELINE = """
name: bench
source:
  kafka: {{topics: ["bench"]}}
schedule: null
log: {{path: "{folder}/log"}}
writers:
  - {{name: cassandra, kind: journal, keyspace: whole}}
"""


@dataclass(frozen=True)
class TaskTime:
    """When a task ran, in seconds after the run's start."""

    name: str
    began: float
    ended: float


def whole_run(api: AirflowApi) -> tuple[float, list[TaskTime]]:
    """Run the DAG once; returns its seconds from start to end, and those of its tasks."""
    _wait_until(lambda: api.has_dag(DAG_ID), f"{DAG_ID} is not known to Airflow")
    api.unpause(DAG_ID)
    run_id = api.trigger(DAG_ID)
    _wait_until(
        lambda: api.run(DAG_ID, run_id)["state"] in ("success", "failed"), "the run does not end", 900
    )
    run = api.run(DAG_ID, run_id)
    path = f"/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances"
    tasks = api.request("GET", path, "list the tasks")["task_instances"]
    assert run["state"] == "success", [(task["task_id"], task["state"]) for task in tasks]
    start = _moment(run["start_date"])
    times = [
        TaskTime(task["task_id"], _moment(task["start_date"]) - start, _moment(task["end_date"]) - start)
        for task in tasks
        if task["start_date"] and task["state"] == "success"
    ]
    return float(run["duration"]), sorted(times, key=lambda one: one.began)


def delivery_alone(own: Own, load: Load) -> float:
    """Records a second of delivering the same load from a log of its own, on the same server."""
    port, token = own.settings.spark_port, token_file(own.settings).read_text().strip()
    connection = SparkConnection(address=f"sc://{HOST}:{port}", token=token)
    with tempfile.TemporaryDirectory() as root, open_session("bench.alone", connection) as engine:
        binding = make_log(root, load, 2 * 10**15)
        (seconds,) = deliver_bindings(engine.spark, root, "alone", own.settings.cassandra_port, [binding])
    return load.appends / seconds


def measure(load: Load) -> None:
    """Print the tables of one load."""
    with own_services(PIPELINE) as own:
        own.start_all(SparkMode.CONNECT)
        fill_topic(own.kafka, load)
        with AirflowApi(own.settings) as api:
            seconds, tasks = whole_run(api)
        alone = delivery_alone(own, load)
        ceiling = statistics.mean(
            journal_ceiling.measure(load, "ceiling", own.settings.cassandra_port) for _ in range(2)
        )
    rate = load.appends / seconds
    print(
        f"\n| a whole run of {load.appends:,} records, {load.entities:,} entities | | of it |\n|---|---|---|"
    )
    print(f"| from start to end | {seconds:.1f} s | {rate:,.0f} records/s (goal {GOALS[load.appends]:,}) |")
    print(f"| the same delivery alone, afterwards | {alone:,.0f} records/s | {rate / alone:.2f} |")
    print(f"| ceiling, afterwards | {ceiling:,.0f} records/s | {rate / ceiling:.2f} |")
    print("\n| task | began, s | ended, s |\n|---|---|---|")
    for task in tasks:
        print(f"| `{task.name}` | {task.began:.1f} | {task.ended:.1f} |")


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _wait_until(is_true: Any, problem: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, problem
        time.sleep(0.5)


def main(chosen: Sequence[str]) -> None:
    for load in LOADS:
        if not chosen or str(load.appends) in chosen:
            measure(load)


if __name__ == "__main__":
    main(sys.argv[1:])
