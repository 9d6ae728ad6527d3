"""`<pipeline>.replicate` through Airflow, on real Kafka, Spark and Cassandra."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.system.conftest import wait_until

from tidemark.connections import Connections
from tidemark.delivery.pipeline_file import find_pipeline
from tidemark.delivery.replicate import open_control
from tidemark.delivery.status import PipelineStatus, read_status
from tidemark.embedded.sample_orders import sample_actions
from tidemark.journal.action import Action, Append, Delete, Purge
from tidemark.journal.payload import decode

pytestmark = pytest.mark.system
NOW = 1_794_000_000_000


def status_of(services: Any, pipeline: str) -> PipelineStatus:
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    return read_status(find_pipeline(pipeline), open_control(connections))


def readable_events(actions: list[Action]) -> dict[str, set[int]]:
    """What a reader of each entity must see, told by the actions alone and by the simplest means."""
    entities: dict[str, set[int]] = {}
    for action in actions:
        numbers = entities.setdefault(action.key, set())
        match action:
            case Append():
                numbers |= {event.seq_nr for event in decode(action.form, action.payload).events}
            case Delete():
                numbers -= set(range(1, action.to + 1))
            case Purge():
                numbers.clear()
    return {key: numbers for key, numbers in entities.items() if numbers}


def events_in_cassandra(services: Any, keyspace: str) -> dict[str, set[int]]:
    entities: dict[str, set[int]] = {}
    for row in services.session.execute(f"SELECT id, seq_nr FROM {keyspace}.journal"):
        entities.setdefault(row.id, set()).add(row.seq_nr)
    return entities


def archived_messages(folder: Path) -> list[dict[str, Any]]:
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines())
    return [json.loads(line) for line in lines]


def test_two_runs_bring_everything_to_cassandra_and_to_files(services: Any) -> None:
    first, second = list(sample_actions(600, 1, NOW)), list(sample_actions(300, 2, NOW + 1000))
    services.create_topic("skeleton", partitions=3)

    services.send("skeleton", first)
    services.replicate("skeleton")
    services.send("skeleton", second)
    run_id = services.replicate("skeleton")

    status = status_of(services, "skeleton")
    assert status.log.end == len(first) + len(second) - 1
    assert {writer.name: writer.position for writer in status.writers} == {"cassandra": 899, "archive": 899}
    assert events_in_cassandra(services, "skeleton") == readable_events(first + second)
    archived = archived_messages(services.settings.home / "archive" / "skeleton")
    assert [message["id"] for message in archived] == list(range(900))
    pointers = services.session.execute("SELECT offset FROM skeleton.pointer2")
    assert sum(pointer.offset + 1 for pointer in pointers) == 900
    published = services.airflow.returned("skeleton.replicate", run_id, "publish")
    assert (published["ids"], published["records"]) == ([600, 899], 300)


def test_a_run_with_nothing_new_starts_no_jvm_and_ends_within_5_s(services: Any) -> None:
    services.create_topic("idle")

    run_id = services.replicate("idle")

    tasks = {task.task_id: task.state for task in services.airflow.tasks("idle.replicate", run_id)}
    assert tasks == {"bind": "success", "capture": "skipped", "publish": "skipped", "deliver": "skipped"}
    assert services.airflow.run("idle.replicate", run_id)["duration"] < 5


def test_a_broken_pipeline_file_is_one_import_error_and_hides_nothing(services: Any) -> None:
    errors = services.airflow.request("GET", "/importErrors", "list import errors")["import_errors"]

    assert [Path(error["filename"]).name for error in errors] == ["refused_pipelines.py"]
    assert "broken.yaml:4:" in errors[0]["stack_trace"]
    assert "did you mean" in errors[0]["stack_trace"].lower()
    assert services.airflow.has_dag("skeleton.replicate")


def test_a_missing_topic_fails_the_run_with_what_to_do(services: Any) -> None:
    airflow = services.airflow
    airflow.unpause("unreachable.replicate")
    run_id = airflow.trigger("unreachable.replicate")

    def first_failure() -> bool:
        tasks = {task.task_id: task.state for task in airflow.tasks("unreachable.replicate", run_id)}
        return tasks["bind"] in ("up_for_retry", "failed")

    wait_until(first_failure, 60, "the first failure of bind")
    log = services.task_logs("unreachable.replicate", run_id)
    assert "unreachable: Kafka has no topic unreachable. Nothing was bound. Create it" in log
    assert status_of(services, "unreachable").upper == 0
