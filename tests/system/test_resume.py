"""Stop, resume and retry through the DAGs: a broken target, an unreadable message, killed applications.

The three stories happen at the same time, because most of each is waiting for Airflow; each test is about
one. What comes before a delivery is not what the first two are about: most of their messages are in the log
before a run begins.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pyarrow.parquet as pq
import pytest
from kafka import KafkaProducer
from tests.support.services.log_runs import LogRuns, expected_digests, publish_here
from tests.support.services.replicated_journal import status_of
from tests.support.waiting import wait_until

from tidemark.cli.demo.orders import sample_actions
from tidemark.connections import Connections
from tidemark.delivery.status import WriterStatus
from tidemark.embedded.errors import AirflowRefused
from tidemark.log.bindings.door import Bindings
from tidemark.log.publish import read_log

pytestmark = pytest.mark.system


def send(services: Any, topic: str, *values: bytes) -> None:
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for value in values:
            producer.send(topic, key=b"k", value=value, partition=0)


def publish(services: Any, pipeline: str, *values: bytes) -> None:
    """Bring messages as far as the log."""
    send(services, pipeline, *values)
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    publish_here(LogRuns(pipeline, services.settings.home, connections), f"published-{uuid4()}")


def writer(services: Any, pipeline: str, name: str) -> WriterStatus:
    return next(one for one in status_of(services, pipeline).writers if one.name == name)


def stands(services: Any, pipeline: str, name: str) -> tuple[int, str]:
    """A writer's position and gate."""
    found = writer(services, pipeline, name)
    return found.position, found.gate


def values(folder: Path) -> list[bytes]:
    files = sorted(folder.glob("*.parquet"))
    return [value for file in files for value in pq.read_table(file)["value"].to_pylist()]


@pytest.fixture(scope="module")
def stories(services: Any) -> Iterator[dict[str, Future[None]]]:
    told = (mended_target, acknowledged_message, killed_applications)
    with ThreadPoolExecutor(len(told)) as threads:
        yield {one.__name__: threads.submit(one, services) for one in told}


def test_F5a_a_broken_target_stops_its_writer_alone_until_it_is_mended(
    stories: dict[str, Future[None]],
) -> None:
    stories["mended_target"].result()


def test_F5b_a_message_that_fails_again_is_acknowledged_by_a_person_while_the_pipeline_waits(
    stories: dict[str, Future[None]],
) -> None:
    stories["acknowledged_message"].result()


def test_N_applications_that_are_killed_are_finished_by_their_retries(
    services: Any, stories: dict[str, Future[None]], tmp_path: Path
) -> None:
    """Worked example N: what was not acknowledged is delivered again, and nothing else."""
    stories["killed_applications"].result()
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    runs = LogRuns("killed", tmp_path, connections)
    (binding,) = list(Bindings(runs.control).after(-1))
    log = read_log(runs.control, runs.folder)
    assert (log.end, log.count) == (299, 300)
    assert {one.position for one in status_of(services, "killed").writers} == {299}
    assert {f.path: f.digest for f in log.files} == expected_digests(runs, binding, tmp_path / "undisturbed")


def mended_target(services: Any) -> None:
    # Given: a file is where the folder of one of two writers should be.
    home = services.settings.home
    services.create_topic("barred", partitions=1)
    (home / "picky").mkdir(exist_ok=True)
    (home / "picky" / "barred").write_text("in the way")
    publish(services, "barred", b'{"n": 1}', b'{"n": 2}')

    # When: a run meets the broken target.
    services.replicate("barred", expected="failed")

    # Then: the other writer went on, and a resume waits for the target.
    assert stands(services, "barred", "picky") == (-1, "stopped")
    assert stands(services, "barred", "plain") == (1, "open")
    resume = services.resume_of("barred")
    assert resume.startswith("auto__picky__gate_")
    services.wait_for_task("barred.resume", resume, "wait_for_target", "deferred")

    # And: further runs pass over the stopped writer, end as failed because of it, and start no second resume.
    publish(services, "barred", b'{"n": 3}')
    later = services.replicate("barred", expected="failed")
    said = services.task_logs("barred.replicate", later)
    assert "the gate is closed at ids 0 to 1 (target)" in said
    assert "barred: writer picky is stopped, everything else was done." in said
    assert stands(services, "barred", "plain") == (2, "open")
    assert services.resume_of("barred") == resume

    # When: the cause is gone.
    (home / "picky" / "barred").unlink()
    assert services.wait_for_run("barred.resume", resume) == "success"

    # Then: the gate is open at the end of what failed.
    assert stands(services, "barred", "picky") == (1, "open")
    assert values(home / "picky" / "barred") == [b'{"n":1}', b'{"n":2}']
    assert values(home / "plain" / "barred") == [b'{"n": 1}', b'{"n": 2}', b'{"n": 3}']

    # And: a person can stop it again from the UI.
    conf = {"writer": "picky", "action": "stop", "reason": "maintenance"}
    acted = services.airflow.trigger("barred.resume", conf)
    assert services.wait_for_run("barred.resume", acted) == "success"
    assert writer(services, "barred", "picky").reason == "stopped by admin: maintenance"


def acknowledged_message(services: Any) -> None:
    # Given: the second of three messages is no JSON object, and a stopped writer stops the pipeline.
    home = services.settings.home
    services.create_topic("walled", partitions=1)
    publish(services, "walled", b'{"n": 1}', b"poison", b'{"n": 3}')

    # When: the message was tried in bulk, then twice alone.
    services.replicate("walled", expected="failed")
    first = services.resume_of("walled")

    # Then: a person is asked; to try again leads to the same question.
    services.answer("walled.resume", first, "ask", "Retry", reason="")
    assert services.wait_for_run("walled.resume", first) == "success"
    second = services.resume_of("walled", after=1)
    assert stands(services, "walled", "picky") == (0, "stopped")

    # And: meanwhile another run waits, deferred, and binds nothing.
    send(services, "walled", b'{"n": 4}')
    waiting = services.airflow.trigger("walled.replicate")
    services.wait_for_task("walled.replicate", waiting, "gate_picky", "deferred")
    assert status_of(services, "walled").log.end == 2

    # And: the form refuses an acknowledgement without a reason, and a run that has none is not even started.
    with pytest.raises(AirflowRefused, match="say why, in the field `reason`"):
        services.answer("walled.resume", second, "ask", "Acknowledge and dead-letter", reason=" ")
    with pytest.raises(AirflowRefused, match="say why, in the parameter `reason`"):
        services.airflow.trigger("walled.resume", {"writer": "picky", "action": "acknowledge", "id": 1})

    # When: they let the message pass.
    services.answer("walled.resume", second, "ask", "Acknowledge and dead-letter", reason="a test record")
    assert services.wait_for_run("walled.resume", second) == "success"

    # Then: a resume delivers the rest, what was left out is on record, and the waiting run goes on by itself.
    third = services.resume_of("walled", after=2)
    assert services.wait_for_run("walled.resume", third) == "success"
    query = "SELECT * FROM tidemark.dead_letter WHERE pipeline = 'walled' AND writer = 'picky'"
    (row,) = services.session.execute(query)
    assert (row.id, row.value, row.reason, row.who) == (1, b"poison", "a test record", "admin")
    letter = json.loads((home / "log" / "walled" / "dead_letters" / "picky" / f"{1:020d}.json").read_text())
    assert (letter["message"]["value"], letter["who"]) == ("poison", "admin")
    assert services.wait_for_run("walled.replicate", waiting) == "success"
    assert stands(services, "walled", "picky") == (3, "open")
    assert values(home / "picky" / "walled") == [b'{"n":1}', b'{"n":3}', b'{"n":4}']


def application_of(pipeline: str, application: str) -> list[psutil.Process]:
    """The processes of a running application: Spark's and the Python driver's."""
    wanted = f"spark_apps/{application}.py --pipeline {pipeline}"
    found = [p for p in psutil.process_iter(["cmdline"]) if wanted in " ".join(p.info["cmdline"] or [])]
    is_up = any("python" in (process.info["cmdline"] or [""])[0] for process in found)
    return found if is_up else []


def killed_applications(services: Any) -> None:
    services.create_topic("killed", partitions=2)
    services.send("killed", list(sample_actions(300, 1, 1_794_000_000_000)))
    airflow, dag_id = services.airflow, "killed.replicate"
    wait_until(lambda: airflow.has_dag(dag_id), what=f"{dag_id} known to Airflow")
    airflow.unpause(dag_id)

    run_id = airflow.trigger(dag_id)
    for name in ("capture", "deliver"):
        for process in wait_until(lambda name=name: application_of("killed", name), 240, f"{name} running"):
            process.kill()

    ended = ("success", "failed")
    wait_until(lambda: airflow.run(dag_id, run_id)["state"] in ended, 480, f"the end of {run_id}")
    assert airflow.run(dag_id, run_id)["state"] == "success", services.task_logs(dag_id, run_id)
