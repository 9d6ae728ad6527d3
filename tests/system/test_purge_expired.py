"""`<pipeline>.purge_expired` through Airflow, on real Kafka and Cassandra: missed days, plan to report."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.support.services.expiry_runs import WRITER, ExpiryRuns, appended, expired
from tests.support.services.journal_runs import read_all_visible
from tests.support.services.log_runs import LogRuns, deliver_here, publish_here
from tests.support.waiting import wait_until

from tidemark.connections import Connections
from tidemark.expiry.state import read_days, runs

pytestmark = pytest.mark.system

NAME, DAG_ID, ZONE = "expiring", "expiring.purge_expired", ZoneInfo("Europe/Prague")


def day(back: int) -> date:
    return datetime.now(ZONE).date() - timedelta(days=back)


def test_missed_days_are_purged_by_one_run_and_by_a_backfill(services: Any, tmp_path: Path) -> None:
    # Given: entities that expired on five days without a run; one that was extended since.
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    log, expiry = LogRuns(NAME, tmp_path, connections), ExpiryRuns(NAME, connections)
    services.create_topic(NAME)
    old = [expired(f"e{back}", back) for back in (7, 6, 5, 4)]
    services.send(NAME, [*old, expired("extended", 6), appended("kept")])
    replicate(log, expiry)
    services.send(NAME, [appended("extended", seq_nr=2)])

    # When: it is run for some of them: on paper, for too many, and when a person has approved the plan.
    unpause(services)
    days = {"first_day": str(day(7)), "last_day": str(day(4))}
    dry = begin(services, **days)
    assert services.wait_for_run(DAG_ID, dry) == "success", services.task_logs(DAG_ID, dry)
    many = begin(services, **days, dry_run=False)
    assert services.wait_for_run(DAG_ID, many) == "failed"
    fewer = {"first_day": str(day(7)), "last_day": str(day(5))}
    real = begin(services, **fewer, dry_run=False, approve=True, max_purges=4)
    services.answer(DAG_ID, real, "approve", "Approve")
    # And: the last one by a backfill.
    filled = backfill(services, day(4))
    for run_id in (real, filled):
        services.wait_for_task(DAG_ID, run_id, "wait_for_replication", "deferred")
    assert read_days(log.control, WRITER).unfinished == tuple(map(day, (7, 6, 5, 4)))
    replicate(log, expiry)
    for run_id in (real, filled):
        assert services.wait_for_run(DAG_ID, run_id) == "success", services.task_logs(DAG_ID, run_id)

    # Then: the dry run and the one that was refused have shown what they would have done, and sent nothing.
    airflow = services.airflow
    assert airflow.returned(DAG_ID, dry, "plan")["total"] == 5
    assert "expiring/extended" in services.task_logs(DAG_ID, dry)
    assert "5 entities expired, and a run may purge 3. Nothing was sent." in services.task_logs(DAG_ID, many)
    report = airflow.returned(DAG_ID, real, "report")
    assert (report["found"], report["purged"], report["left_alone"]) == (4, 3, {"a newer append": 1})
    assert [(one["day"], one["purged"]) for one in report["days"]] == [
        (str(day(7)), 1),
        (str(day(6)), 1),
        (str(day(5)), 1),
    ]
    assert airflow.returned(DAG_ID, filled, "report")["purged"] == 1
    assert set(read_all_visible(services.session, NAME)[NAME]) == {"extended", "kept"}
    # And: the run on schedule had nothing to do, so it started no Spark; all of them are in the history.
    assert sorted(row["purged"] for row in runs(log.control)) == [0, 1, 3]
    assert read_days(log.control, WRITER).unfinished == ()
    assert read_days(log.control, WRITER).through == day(1)


def unpause(services: Any) -> None:
    """Let the DAG run, and wait for the run of the newest interval, which it begins with."""
    airflow = services.airflow
    wait_until(lambda: airflow.has_dag(DAG_ID), what=f"{DAG_ID} known to Airflow")
    airflow.unpause(DAG_ID)
    (run_id,) = wait_until(lambda: airflow.runs(DAG_ID), what="a scheduled run")
    assert services.wait_for_run(DAG_ID, run_id) == "success", services.task_logs(DAG_ID, run_id)
    assert run_id.startswith("scheduled__")
    assert "nothing has expired" in services.task_logs(DAG_ID, run_id)


def begin(services: Any, **conf: Any) -> str:
    run_id: str = services.airflow.trigger(DAG_ID, conf)
    return run_id


def backfill(services: Any, covered: date) -> str:
    """`airflow backfill create` for the interval of one day; the id of its run."""
    begins = datetime(covered.year, covered.month, covered.day, tzinfo=ZONE)
    body = {
        "dag_id": DAG_ID,
        "from_date": begins.isoformat(),
        "to_date": begins.isoformat(),
        "reprocess_behavior": "none",
        "dag_run_conf": {"dry_run": False},
        "max_active_runs": 1,
    }
    airflow = services.airflow
    airflow.request("POST", "/backfills", "create a backfill", json=body)
    path = f"/dags/{DAG_ID}/dagRuns"

    def found() -> str | None:
        some = airflow.request("GET", path, "list the runs", params={"run_type": "backfill"})["dag_runs"]
        return some[0]["dag_run_id"] if some else None

    run_id: str = wait_until(found, what="a run of the backfill")
    return run_id


def replicate(log: LogRuns, expiry: ExpiryRuns) -> None:
    publish_here(log, f"run-{log.control.bindings_head().version}")
    deliver_here(expiry.opened, WRITER)
