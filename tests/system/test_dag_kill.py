"""Kills through the DAG: the capture and the deliver application die, and the tasks' own retries end the run
well. The second is worked example N: what was not acknowledged is delivered again, and nothing else.
"""

from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.services.log_runs import LogRuns, expected_digests
from tests.support.services.replicated_journal import status_of
from tests.support.waiting import wait_until

from tidemark.cli.demo.orders import sample_actions
from tidemark.connections import Connections
from tidemark.log.publish import read_log

pytestmark = pytest.mark.system


def application_of(pipeline: str, application: str) -> list[psutil.Process]:
    """The processes of a running application: Spark's and the Python driver's."""
    wanted = f"spark_apps/{application}.py --pipeline {pipeline}"
    found = [p for p in psutil.process_iter(["cmdline"]) if wanted in " ".join(p.info["cmdline"] or [])]
    is_up = any("python" in (process.info["cmdline"] or [""])[0] for process in found)
    return found if is_up else []


def test_N_applications_that_are_killed_are_finished_by_their_retries(services: Any, tmp_path: Path) -> None:
    services.create_topic("killed", partitions=2)
    services.send("killed", list(sample_actions(300, 1, 1_794_000_000_000)))
    airflow, dag_id = services.airflow, "killed.replicate"
    wait_until(lambda: airflow.has_dag(dag_id), what=f"{dag_id} known to Airflow")
    airflow.unpause(dag_id)

    run_id = airflow.trigger(dag_id)
    for name in ("capture", "deliver"):
        for process in wait_until(lambda name=name: application_of("killed", name), 120, f"{name} running"):
            process.kill()

    ended = ("success", "failed")
    wait_until(lambda: airflow.run(dag_id, run_id)["state"] in ended, 240, f"the end of {run_id}")
    assert airflow.run(dag_id, run_id)["state"] == "success", services.task_logs(dag_id, run_id)
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    runs = LogRuns("killed", tmp_path, connections)
    (binding,) = runs.control.bindings_after(-1)
    log = read_log(runs.control, runs.folder)
    assert (log.end, log.count) == (299, 300)
    assert {one.position for one in status_of(services, "killed").writers} == {299}
    assert {f.path: f.digest for f in log.files} == expected_digests(runs, binding, tmp_path / "undisturbed")
