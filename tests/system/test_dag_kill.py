"""One kill through the DAG: the capture application dies, and the task's own retry ends the run well."""

from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.system.conftest import wait_until
from tests.system.log_runs import LogRuns, expected_digests

from tidemark.connections import Connections
from tidemark.embedded.sample_orders import sample_actions
from tidemark.log.publish import read_log

pytestmark = pytest.mark.system


def application_of(pipeline: str) -> list[psutil.Process]:
    """The processes of a running capture: Spark's and the Python driver's."""
    wanted = f"spark_apps/capture.py --pipeline {pipeline}"
    found = [p for p in psutil.process_iter(["cmdline"]) if wanted in " ".join(p.info["cmdline"] or [])]
    is_up = any("python" in (process.info["cmdline"] or [""])[0] for process in found)
    return found if is_up else []


def test_a_capture_that_is_killed_is_finished_by_its_retry(services: Any, tmp_path: Path) -> None:
    services.create_topic("killed", partitions=2)
    services.send("killed", list(sample_actions(300, 1, 1_794_000_000_000)))
    airflow, dag_id = services.airflow, "killed.replicate"
    wait_until(lambda: airflow.has_dag(dag_id), what=f"{dag_id} known to Airflow")
    airflow.unpause(dag_id)

    run_id = airflow.trigger(dag_id)
    for process in wait_until(lambda: application_of("killed"), 120, "the capture application"):
        process.kill()

    ended = ("success", "failed")
    wait_until(lambda: airflow.run(dag_id, run_id)["state"] in ended, 240, f"the end of {run_id}")
    assert airflow.run(dag_id, run_id)["state"] == "success", services.task_logs(dag_id, run_id)
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    runs = LogRuns("killed", tmp_path, connections)
    (binding,) = runs.control.bindings_after(-1)
    log = read_log(runs.control, runs.folder)
    assert (log.end, log.count) == (299, 300)
    assert {f.path: f.digest for f in log.files} == expected_digests(runs, binding, tmp_path / "undisturbed")
