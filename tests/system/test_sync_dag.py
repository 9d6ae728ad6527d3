"""``<pipeline>.sync`` through Airflow, on real Kafka, Cassandra and Spark: from the dump to the report."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.services.log_runs import LogRuns
from tests.support.services.sync_runs import PARTITIONS, SyncRuns
from tests.support.waiting import wait_until

from tidemark.connections import Connections

pytestmark = pytest.mark.system

NAME, DAG_ID = "synced", "synced.sync"
SHOWING = {"validate", "replicate", "barrier", "diff", "guard"}
"""The tasks of a dry run."""
START = "1970-01-01T00:00:12Z"


def test_a_dump_is_shown_refused_approved_and_sent_and_replications_are_started(
    services: Any, tmp_path: Path
) -> None:
    # Given: objects that nothing has replicated yet, and a dump that lacks one of them.
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    events = SyncRuns(LogRuns(NAME, tmp_path, connections))
    services.create_topic(NAME, PARTITIONS)
    events.send(("a", "insert", 9), ("b", "insert", 10), ("c", "insert", 10, ["user/u"]))
    dump = events.dump(("a", 10), ("c", 10, ["user/u"]), ("d", 10))
    airflow = services.airflow
    for dag_id in (f"{NAME}.replicate", DAG_ID):
        wait_until(lambda dag_id=dag_id: airflow.has_dag(dag_id), what=f"{dag_id} known to Airflow")
        airflow.unpause(dag_id)

    # When: it is run dry; with too few deletes allowed; and when a person approves the plan.
    given = {"dump": dump, "start": START}
    dry = airflow.trigger(DAG_ID, given)
    assert services.wait_for_run(DAG_ID, dry) == "success", services.task_logs(DAG_ID, dry)
    refused = airflow.trigger(DAG_ID, {**given, "dry_run": False, "max_deletes": "0"})
    assert services.wait_for_run(DAG_ID, refused) == "failed"
    assert [one for _, one in events.readers_view().valid() if one.correction] == []
    real = airflow.trigger(DAG_ID, {**given, "dry_run": False, "approve": True, "reason": "drift"})
    services.answer(DAG_ID, real, "approve", "Approve")
    assert services.wait_for_run(DAG_ID, real) == "success", services.task_logs(DAG_ID, real)

    # Then: the dry run has started the replication that it needed, and shown the plan.
    states = {task.task_id: task.state for task in airflow.tasks(DAG_ID, dry)}
    assert {task for task, state in states.items() if state == "success"} == SHOWING
    assert {task for task, state in states.items() if state == "skipped"} == states.keys() - SHOWING
    assert airflow.returned(DAG_ID, dry, "diff")["outcomes"] == {
        "insert": 1,
        "update": 1,
        "delete": 1,
        "same": 1,
    }
    assert "1 of 3 objects are not in the dump" in services.task_logs(DAG_ID, refused)
    # And: the corrections are delivered, verified and reported.
    report = airflow.returned(DAG_ID, real, "report")
    assert (report["sent"], report["overtaken"], report["as_sent"]) == (3, 0, 3)
    assert events.objects(["a", "b", "c", "d"]) == {
        "a": (False, 10, ()),
        "b": (True, 11, ()),
        "c": (False, 10, ("user/u",)),
        "d": (False, 10, ()),
    }
    assert [one.reason for one in events.runs.control.decisions()] == ["drift"]

    # And: once more, it finds nothing to correct, and ends without asking.
    again = airflow.trigger(DAG_ID, {**given, "dry_run": False, "approve": True})
    assert services.wait_for_run(DAG_ID, again) == "success", services.task_logs(DAG_ID, again)
    assert airflow.returned(DAG_ID, again, "report")["corrections"] == 0
