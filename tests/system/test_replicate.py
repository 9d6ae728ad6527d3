"""`<pipeline>.replicate` through Airflow, on real Kafka (SASL over TLS), Spark and Cassandra."""

import json
import re
import shlex
import sqlite3
import subprocess
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.services.command_lines import command_lines
from tests.support.services.marked_connections import MARKER
from tests.support.services.replicated_journal import NOW, events_in_cassandra, readable_events, status_of
from tests.support.waiting import wait_until

from tidemark.cli.demo.orders import sample_actions
from tidemark.journal.action import Action
from tidemark.settings import ROOT

pytestmark = pytest.mark.system
PAGE = (ROOT / "docs" / "delivery.md").read_text()


def files_with(marker: str, paths: Iterable[Path]) -> set[str]:
    """The names of the files that hold it; one that is gone by the time it is read does not."""
    found = set()
    for path in paths:
        with suppress(FileNotFoundError):
            if path.is_file() and marker.encode() in path.read_bytes():
                found.add(path.name)
    return found


@dataclass(frozen=True)
class Replicated:
    """Two runs of one pipeline whose connections carry the marked password."""

    actions: list[Action]
    run_id: str
    command_lines: set[str]
    failing: str
    """A run of ``mistrusted``, whose password Kafka refuses."""


@pytest.fixture(scope="module")
def replicated(services: Any) -> Replicated:
    first, second = list(sample_actions(600, 1, NOW)), list(sample_actions(300, 2, NOW + 1000))
    failing = services.begin("mistrusted")
    services.create_topic("skeleton", partitions=3)
    services.send("skeleton", first)
    services.replicate("skeleton")
    services.send("skeleton", second)
    with command_lines() as seen:
        run_id = services.replicate("skeleton")
    return Replicated(first + second, run_id, seen, failing)


def test_every_writer_is_at_the_end_of_the_log(services: Any, replicated: Replicated) -> None:
    status = status_of(services, "skeleton")
    assert status.log.end == 899
    assert {writer.name: writer.position for writer in status.writers} == {"cassandra": 899, "archive": 899}


def test_cassandra_holds_what_a_reader_must_see(services: Any, replicated: Replicated) -> None:
    assert events_in_cassandra(services, "skeleton") == readable_events(replicated.actions)


def test_the_pointers_cover_every_record(services: Any, replicated: Replicated) -> None:
    pointers = services.session.execute("SELECT offset FROM skeleton.pointer2")
    assert sum(pointer.offset + 1 for pointer in pointers) == 900


def test_the_files_hold_every_message_once_in_order(services: Any, replicated: Replicated) -> None:
    files = sorted((services.settings.home / "archive" / "skeleton").glob("*.jsonl"))
    assert len(files) == 2
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    assert [line["id"] for line in lines] == list(range(900))


def test_publish_says_what_it_published(services: Any, replicated: Replicated) -> None:
    published = services.airflow.returned("skeleton.replicate", replicated.run_id, "publish")
    assert (published["ids"], published["records"]) == ([600, 899], 300)


def asset_event(services: Any, run_id: str, task_id: str) -> dict[str, Any]:
    asked = {"source_dag_id": "skeleton.replicate", "source_run_id": run_id, "source_task_id": task_id}
    found = services.airflow.request("GET", "/assets/events", "list asset events", params=asked)
    (event,) = found["asset_events"]
    return dict(event["extra"])


def test_the_log_s_asset_event_carries_what_was_published(services: Any, replicated: Replicated) -> None:
    extra = asset_event(services, replicated.run_id, "publish")
    assert extra == services.airflow.returned("skeleton.replicate", replicated.run_id, "publish")
    assert {"t", "ids", "records", "bytes", "seconds"} <= extra.keys()


def test_the_last_task_and_its_asset_event_say_what_the_run_came_to(
    services: Any, replicated: Replicated
) -> None:
    extra = asset_event(services, replicated.run_id, "check_writers")
    assert extra == services.airflow.returned("skeleton.replicate", replicated.run_id, "check_writers")
    assert (extra["records"], extra["duplicates"]) == (300, 0)
    assert extra["engine"]["kind"] == "connect"
    assert extra["engine"]["address"] == f"sc://localhost:{services.settings.spark_port}"
    assert extra["positions"] == {"cassandra": 899, "archive": 899}
    assert extra["lag"] == {"cassandra": 0, "archive": 0}
    assert extra["events"] >= extra["entities"] > 0
    assert extra["seconds"] > 0


def test_the_audit_is_readable_in_the_task_s_log(services: Any, replicated: Replicated) -> None:
    lines = list(services.airflow.task_log("skeleton.replicate", replicated.run_id, "audit"))
    assert "met      rows written = rows read" in lines


def test_the_audit_s_results_are_linked_for_people_who_may_see_them(
    services: Any, replicated: Replicated
) -> None:
    path = f"/dags/skeleton.replicate/dagRuns/{replicated.run_id}/taskInstances/audit/links"
    link = services.airflow.request("GET", path, "show the task's links")["extra_links"]["Audit results"]
    assert httpx.get(link).status_code == httpx.codes.UNAUTHORIZED
    page = services.airflow.page(link)
    assert "ids are unique" in page
    assert "Passed." in page


def test_a_password_is_in_no_command_line(replicated: Replicated) -> None:
    assert [line for line in replicated.command_lines if "tidemark_workers.daemon" in line], (
        "no look came in time"
    )
    assert not [line for line in replicated.command_lines if MARKER in line]


def test_a_password_is_in_no_log_xcom_or_template(services: Any, replicated: Replicated) -> None:
    """The home holds Airflow's logs, its database (XComs, rendered templates), and the log and the temporary
    files of the Connect server.
    """
    assert (services.settings.home / "logs" / "spark-connect.log").stat().st_size
    assert list((services.settings.home / "spark" / "tmp").iterdir())
    brokers_own = {"further.properties", "server.properties"}
    assert files_with(MARKER, services.settings.home.rglob("*")) == brokers_own
    assert files_with(MARKER, Path("/tmp").glob("tidemark-*/connections.json")) == set()


def rows_of(database: Path) -> Iterator[tuple[str, str]]:
    """Every value of every table of a SQLite database as text, with the table's name."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60)) as opened:
        opened.text_factory = bytes
        tables = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            name = table.decode()
            for row in opened.execute(f'SELECT * FROM "{name}"'):
                for value in row:
                    text = value if isinstance(value, bytes) else str(value).encode()
                    yield name, text.decode(errors="replace")


def test_a_password_is_in_no_table_of_airflow_s_database(services: Any, replicated: Replicated) -> None:
    """Item 26: XComs, rendered templates, serialised DAGs, audit entries: whatever the scheduler wrote."""
    hidden = (MARKER, b64encode(MARKER.encode()).decode().rstrip("="))
    searched, found = Counter[str](), set()
    for table, text in rows_of(services.settings.home / "airflow" / "airflow.db"):
        searched[table] += 1
        found |= {table for secret in hidden if secret in text}
    assert found == set()
    assert all(
        searched[table] for table in ("xcom", "rendered_task_instance_fields", "serialized_dag", "log")
    )


def test_a_password_is_in_nothing_that_the_api_shows_of_a_run(services: Any, replicated: Replicated) -> None:
    """Item 26: the same as people see it, task by task."""
    run = f"/dags/skeleton.replicate/dagRuns/{replicated.run_id}"
    shown = [services.airflow.request("GET", run, "show the run")]
    for task in services.airflow.tasks("skeleton.replicate", replicated.run_id):
        place = f"{run}/taskInstances/{task.task_id}"
        shown.append(services.airflow.request("GET", place, "show the task"))
        entries = services.airflow.request("GET", f"{place}/xcomEntries", "list XComs")["xcom_entries"]
        left = ("skeleton.replicate", replicated.run_id, task.task_id)
        shown += [services.airflow.returned(*left, entry["key"]) for entry in entries]
        if task.state == "success":
            shown.append(
                list(services.airflow.task_log("skeleton.replicate", replicated.run_id, task.task_id))
            )
    assert "spark_apps" in str(shown), "no rendered template was looked at"
    assert MARKER not in str(shown)


def test_a_password_that_kafka_refuses_is_not_in_what_the_failed_task_says(
    services: Any, replicated: Replicated
) -> None:
    """Item 26: errors of clients are where passwords slip out."""

    def state() -> str | None:
        tasks = services.airflow.tasks("mistrusted.replicate", replicated.failing)
        return {task.task_id: task.state for task in tasks}["bind"]

    wait_until(lambda: state() in ("up_for_retry", "failed"), 120, "the first failure of bind")
    log = services.task_logs("mistrusted.replicate", replicated.failing)
    assert "mistrusted: Kafka does not answer at" in log
    assert MARKER not in log


@pytest.mark.parametrize("page", ["docs", "redoc", "openapi.json"])
def test_nothing_of_the_plugin_s_schema_is_shown_to_strangers(services: Any, page: str) -> None:
    """Item 26."""
    url = f"http://127.0.0.1:{services.settings.airflow_port}/tidemark/{page}"
    assert httpx.get(url).status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.NOT_FOUND)


def test_no_other_user_can_read_airflow_s_database_keys_and_passwords(services: Any) -> None:
    """Item 26."""
    home = services.settings.home
    assert [path.stat().st_mode & 0o077 for path in (home, home / "airflow")] == [0, 0]
    secret = [
        path for path in (home / "airflow").iterdir() if path.name.startswith(("airflow.", "simple_auth"))
    ]
    assert {path.name for path in secret} >= {"airflow.db", "airflow.cfg"}
    assert {path.name: path.stat().st_mode & 0o077 for path in secret if path.stat().st_mode & 0o077} == {}


def test_i22_the_documented_backfill_runs_for_a_pipeline_without_a_schedule(
    services: Any, replicated: Replicated
) -> None:
    # Given: the command of the page, for this pipeline and for the days of its bindings.
    today = datetime.now(UTC)
    command = documented("dags trigger", "skeleton")
    begin, end = (f"{today + timedelta(days=days):%Y-%m-%d}" for days in (-1, 1))
    run_id = f"documented_{begin}"

    # When: it is run as it stands there.
    done = airflow_command(
        command.replace("2026-11-01", begin).replace("2026-11-02", end), "--run-id", run_id
    )

    # Then: everything was delivered again and verified, and no position has moved.
    assert done.returncode == 0, done.stderr
    services.wait_for_end("skeleton", run_id)
    verified = services.airflow.returned("skeleton.replicate", run_id, "reconcile")["cassandra"]
    assert (verified["passed"], verified["position"]) == (True, 899)
    assert {one.position for one in status_of(services, "skeleton").writers} == {899}


def test_i22_airflow_s_own_backfill_refuses_a_pipeline_without_a_schedule(services: Any) -> None:
    (command,) = re.findall(r"`airflow (backfill create .*?)`", PAGE)
    refused = airflow_command(f"bin/airflow {command.replace('orders', 'idle')}")
    assert refused.returncode != 0
    assert "has a non-periodic schedule that does not support backfills" in refused.stdout + refused.stderr
    assert "has a non-periodic schedule that does not support backfills" in PAGE


def documented(what: str, pipeline: str) -> str:
    """The command of docs/delivery.md, for another pipeline."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"bin/airflow {what} ")]
    return line.replace("orders.replicate", f"{pipeline}.replicate")


def airflow_command(command: str, *more: str) -> "subprocess.CompletedProcess[str]":
    """A line of the documentation as a shell runs it, in the checkout."""
    words = [*shlex.split(command), *more]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_damage_in_the_tables_fails_the_run_and_closes_the_gate_with_the_entity(
    services: Any, replicated: Replicated
) -> None:
    # Given: an event that readers must see was removed.
    topic, table = "skeleton", "skeleton.journal"
    row = services.session.execute(f"SELECT id, segment, seq_nr FROM {table} LIMIT 1").one()
    where = "id = %s AND topic = %s AND segment = %s AND seq_nr = %s"
    services.session.execute(
        f"DELETE FROM {table} USING TIMESTAMP {2**62} WHERE {where}", (row.id, topic, row.segment, row.seq_nr)
    )

    # When: all bindings are delivered again, and what they touch is verified.
    run_id = services.airflow.trigger("skeleton.replicate", {"from_t": 0})
    services.wait_for_end("skeleton", run_id, expected="failed")

    # Then: the task says which entity is different, its link shows it, and the writer is stopped.
    said = f"skeleton: {row.id}: event {row.seq_nr} is missing"
    lines = list(services.airflow.task_log("skeleton.replicate", run_id, "reconcile"))
    assert any(said in line for line in lines), lines
    path = f"/dags/skeleton.replicate/dagRuns/{run_id}/taskInstances/reconcile/links"
    link = services.airflow.request("GET", path, "show the task's links")["extra_links"]["Reconciliation"]
    assert said in unescape(services.airflow.page(link))
    (stopped,) = (one for one in status_of(services, "skeleton").writers if one.gate == "stopped")
    assert (stopped.name, said in stopped.reason) == ("cassandra", True)


def test_a_run_with_nothing_new_starts_no_jvm_and_ends_within_5_s(services: Any) -> None:
    services.create_topic("idle")

    durations = []
    for _ in range(6):  # the quickest counts: the machine has other things to do
        run_id = services.replicate("idle")
        tasks = {task.task_id: task.state for task in services.airflow.tasks("idle.replicate", run_id)}
        assert {task for task, state in tasks.items() if state != "skipped"} == {"bind"}
        durations.append(services.airflow.run("idle.replicate", run_id)["duration"])
        if durations[-1] < 5:
            break

    assert min(durations) < 5


def test_a_broken_pipeline_file_is_one_import_error_and_hides_nothing(services: Any) -> None:
    errors = services.airflow.request("GET", "/importErrors", "list import errors")["import_errors"]

    assert [Path(error["filename"]).name for error in errors] == ["refused_pipelines.py"]
    assert "broken.yaml:4:" in errors[0]["stack_trace"]
    assert "did you mean" in errors[0]["stack_trace"].lower()
    assert services.airflow.has_dag("skeleton.replicate")


def test_a_missing_topic_fails_the_run_at_once_with_what_to_do(services: Any) -> None:
    """Item 15: no retries, and the command that creates the topic."""
    run_id = services.replicate("unreachable", expected="failed", seconds=60)

    log = services.task_logs("unreachable.replicate", run_id)
    said = "unreachable: Kafka has no topic unreachable. Nothing was bound. Create it with: "
    assert f"{said}tidemark topics create unreachable;" in log
    assert attempts_of(services, "unreachable", run_id, "bind") == ["attempt=1.log"]
    assert status_of(services, "unreachable").upper == 0


def test_what_only_a_person_can_heal_fails_at_once_without_retries(services: Any) -> None:
    services.create_topic("compacted", **{"cleanup.policy": "compact"})

    run_id = services.replicate("compacted", expected="failed", seconds=60)

    log = services.task_logs("compacted.replicate", run_id)
    assert "compacted: topic compacted has cleanup.policy=compact" in log
    assert attempts_of(services, "compacted", run_id, "bind") == ["attempt=1.log"]


def attempts_of(services: Any, pipeline: str, run_id: str, task: str) -> list[str]:
    """The logs of a task, one per attempt."""
    logs = services.settings.home / "airflow" / "logs" / f"dag_id={pipeline}.replicate" / f"run_id={run_id}"
    return sorted(path.name for path in logs.glob(f"task_id={task}/*.log"))
