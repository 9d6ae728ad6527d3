"""`<pipeline>.follow` through Airflow: it waits for a closed log gate, one run follows another, a bad message
starts a resume."""

from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaProducer
from tests.support.services.replicated_journal import status_of
from tests.support.waiting import wait_until

from tidemark.clock import wall_clock
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.system

PIPELINE = "followed"
DAG_ID = f"{PIPELINE}.follow"


def send(services: Any, *values: bytes) -> None:
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for value in values:
            producer.send(PIPELINE, value=value, partition=0)


def positions(services: Any) -> dict[str, int]:
    return {one.name: one.position for one in status_of(services, PIPELINE).writers}


def states(services: Any, run_id: str) -> dict[str, str | None]:
    return {task.task_id: task.state for task in services.airflow.tasks(DAG_ID, run_id)}


def run_after(services: Any, *known: str) -> str:
    """The run that begins after these."""

    def newer() -> list[str]:
        return [run_id for run_id in services.airflow.runs(DAG_ID) if run_id not in known]

    (run_id,) = wait_until(newer, 120, f"a run after {known}")
    return str(run_id)


def set_paused(services: Any, is_paused: bool) -> None:
    services.airflow.request("PATCH", f"/dags/{DAG_ID}", "pause or not", json={"is_paused": is_paused})


@pytest.fixture
def control(services: Any) -> Iterator[LogControl]:
    """The pipeline's log; nothing follows it afterwards."""
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    services.create_topic(PIPELINE, partitions=1)
    wait_until(lambda: services.airflow.has_dag(DAG_ID), what=f"{DAG_ID} known to Airflow")
    yield LogControl(open_control(connections), PIPELINE)
    set_paused(services, True)
    for run_id in services.airflow.active_runs(DAG_ID):  # a paused DAG's run does not end by itself
        path = f"/dags/{DAG_ID}/dagRuns/{run_id}"
        services.airflow.request("PATCH", path, "end the run", json={"state": "failed"})


def test_runs_follow_each_other_from_an_open_log_gate_to_a_bad_message(
    services: Any, control: LogControl
) -> None:
    # Given: the log's gate is closed.
    gate = control.close_gate(
        LogGate(LogGateCause.LOST, "records are lost: followed/0", None, None, (), None, wall_clock())
    )
    send(services, b'{"n": 1}', b'{"n": 2}')

    # When: the pipeline is to be followed.
    set_paused(services, False)
    first = run_after(services)

    # Then: the first task waits without a worker, and the run goes on when the gate opens.
    services.wait_for_task(DAG_ID, first, "wait_until_ready", "deferred")
    assert positions(services) == {"picky": -1, "plain": -1}
    control.open_gate(gate)
    assert services.wait_for_run(DAG_ID, first) == "success", services.task_logs(DAG_ID, first)
    assert positions(services) == {"picky": 1, "plain": 1}
    figures = services.airflow.returned(DAG_ID, first, "follow")
    assert (figures["records"], figures["ended"], figures["stopped"]) == (2, "over", [])
    skipped = {name for name, state in states(services, first).items() if state == "skipped"}
    assert skipped == {"find_stopped", "start_resume", "check_gates"}

    # And: the next run begins by itself, and delivers what comes.
    second = run_after(services, first)
    services.wait_for_task(DAG_ID, second, "follow", "running")
    send(services, b'{"n": 3}')
    wait_until(lambda: positions(services) == {"picky": 2, "plain": 2}, 60, "the third message")

    # When: a message comes that one writer cannot process.
    send(services, b"no object")

    # Then: that run ends at once, starts a resume and fails; the other writer has the message.
    assert services.wait_for_run(DAG_ID, second) == "failed"
    figures = services.airflow.returned(DAG_ID, second, "follow")
    assert (figures["ended"], figures["closed"], figures["stopped"]) == ("gate closed", ["picky"], ["picky"])
    found = states(services, second)
    assert (found["start_resume"], found["check_gates"]) == ("success", "failed")
    assert services.resume_of(PIPELINE).startswith("auto__picky__gate_")
    assert positions(services) == {"picky": 2, "plain": 3}
