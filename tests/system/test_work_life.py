"""A work journal as people have it: declared in a file, woken over Kafka, swept by Spark."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.log_runs import load_application
from tests.support.waiting import wait_until

from tidemark.clock import wall_clock_millis
from tidemark.connections import WorkConnections
from tidemark.consensus.objects import ABSENT
from tidemark.work.claimed_item import Ticket
from tidemark.work.client import Work
from tidemark.work.loader import find_journal, load_journal
from tidemark.work.queue.journal import WorkJournal
from tidemark.work.store.entries import GONE_FOR

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def name() -> str:
    return f"life_{uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def file(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("work") / f"{name}.yaml"
    file.write_text(
        f"name: {name}\nkeyspace: {name}\nkey: {{page: text}}\npayload: {{revision: int}}\n"
        f"max_failures: 1\nhistory: 1d\nmax_timeouts: 1\nwake: {{topic: {name}}}\n"
    )
    return file


@pytest.fixture(scope="module")
def work(services: Any, name: str, file: Path) -> Iterator[Work]:
    services.create_topic(name, 1)
    work, made = Work.create(load_journal(file), cassandra=services.cassandra, kafka=services.kafka)
    assert made
    yield work
    work.close()
    services.session.execute(f"DROP KEYSPACE {name}")


def test_from_an_insert_to_a_dead_letter(services: Any, work: Work) -> None:
    assert work.insert("page/1", {"revision": 1}) == "inserted"
    assert work.insert("page/1", {"revision": 2}) == "merged"
    (item,) = work.claim()
    assert item.payload == {"revision": 2}
    again = Work(work.name, cassandra=services.cassandra, keyspace=work.declared.keyspace)
    assert again.fail(Ticket("page/1", item.token), "no such page") == "dead"
    (letter,) = work.dead()
    assert letter.error == "no such page"
    assert work.redrive(letter, who="ann", reason="it is there now") == "inserted"
    (item,) = again.claim()
    assert work.done(item) == "done"
    assert sorted(run.status for run in work.history()) == ["done", "failed"]


def test_an_insert_wakes_a_worker_that_waits(services: Any, work: Work) -> None:
    waiting = Work(
        work.name, cassandra=services.cassandra, keyspace=work.declared.keyspace, kafka=services.kafka
    )
    bell = waiting._bell
    assert bell.wait(0.1) is False, "nothing was inserted since it began to listen"
    work.insert("page/2", {"revision": 1})
    assert bell.wait(30) is True
    (item,) = waiting.claim()
    waiting.done(item)
    waiting.close()


def test_a_sweep_gives_up_what_lapsed_and_finds_what_no_worker_would_look_at(
    services: Any, work: Work, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_WORK", str(file.parent))
    two_hours_ago = replace(work.parts, clock=lambda: wall_clock_millis() - 2 * 3_600_000)
    earlier = Work.of_journal(WorkJournal(two_hours_ago))
    earlier.insert("lapsing", {"revision": 1})
    assert [item.key for item in earlier.claim()] == ["lapsing"]
    long_ago = Work.of_journal(
        WorkJournal(replace(work.parts, clock=lambda: wall_clock_millis() - GONE_FOR - 60_000))
    )
    long_ago.insert("forgotten", {"revision": 1})
    long_ago.done(*long_ago.claim())
    work.insert("hidden", {"revision": 1})
    hint = work.parts.entries.read("hidden").entry.hint
    partition = f"journal = '{work.name}' AND bucket = '{hint.bucket}' AND shard = 0"
    services.session.execute(
        f"DELETE FROM {work.declared.keyspace}.due WHERE {partition} AND priority = 180 "
        f"AND due_at = {hint.due_at} AND hint_id = '{hint.id}'"
    )
    planned = swept(services, work, tmp_path / "plan", "--dry-run")
    assert (planned["census"]["lost"], planned["forgotten"]) == (1, 1)
    assert work.parts.entries.read("lapsing").entry is not None

    done = swept(services, work, tmp_path / "done")
    assert (done["dead"], done["rearmed"], done["census"]["entries"]) == (1, 1, 2)
    assert (done["forgotten"], work.parts.entries.read("forgotten").version) == (1, ABSENT)
    assert [letter.key for letter in work.dead()] == ["lapsing"]
    assert [item.key for item in work.claim(5)] == ["hidden"]


def swept(services: Any, work: Work, folder: Path, *more: str) -> dict[str, Any]:
    """What the application said about the journal."""
    folder.mkdir()
    summary, connections = folder / "summary.json", folder / "connections.json"
    WorkConnections(cassandra={"cassandra_default": services.cassandra}).write(connections)
    given = ("--journal", work.name, "--connections", str(connections), "--summary", str(summary))
    load_application("sweep_work").main([*given, *more])
    said = json.loads(summary.read_text())
    assert said["ok"], said
    return said["journals"][work.name]


def test_the_dags_drain_a_journal_and_sweep_it(services: Any) -> None:
    pages, _ = Work.create(find_journal("pages"), cassandra=services.cassandra)
    pages.insert("page/1", {"revision": 1})
    assert ended(services, "work.drain_pages") == "success"
    assert pages.get("page/1") is None
    assert ended(services, "work.sweep", {"journal": "pages", "dry_run": False}) == "success"
    by_hand = f"by_hand_{uuid4().hex[:8]}"
    created, _ = Work.create(
        find_journal("pages").model_copy(update={"name": by_hand}), cassandra=services.cassandra
    )
    created.insert("page/1", {"revision": 1})
    assert swept_by_dag(services, {"journal": by_hand})["dry_run"], "dry unless that is switched off"
    assert not swept_by_dag(services, {"journal": by_hand, "dry_run": False})["dry_run"]
    assert created.parts.registry.read().marks != {}


def test_i11_dead_letters_fail_the_sweep_and_are_an_asset_event_until_they_are_seen(services: Any) -> None:
    # Given: a journal with a dead letter that an earlier sweep would have had to report.
    name = f"dying_{uuid4().hex[:8]}"
    declared = find_journal("pages").model_copy(update={"name": name, "max_failures": 1})
    work, _ = Work.create(declared, cassandra=services.cassandra)
    work.insert("page/1", {"revision": 1})
    assert work.fail(*work.claim(), "no such page") == "dead"

    # When: it is swept, then: a task fails, and an event says why.
    run_id = run(services, "work.sweep", {"journal": name}, "failed")
    tasks = {task.task_id: task.state for task in services.airflow.tasks("work.sweep", run_id)}
    assert (tasks["sweep"], tasks["find_dead"], tasks["report_dead"]) == ("success", "success", "failed")
    asked = {"source_dag_id": "work.sweep", "source_run_id": run_id, "source_task_id": "find_dead"}
    found = services.airflow.request("GET", "/assets/events", "list asset events", params=asked)
    (event,) = found["asset_events"]
    assert (event["name"], event["extra"]["count"]) == (f"work.{name}.dead", 1)
    assert event["extra"]["newest"][0]["error"] == "no such page"

    # When: a person has looked at it, then: the sweep is green.
    work.mark_seen(*work.dead(), who="ann", reason="the page was deleted")
    run(services, "work.sweep", {"journal": name}, "success")


def swept_by_dag(services: Any, conf: dict[str, Any]) -> dict[str, Any]:
    """What a run by hand returned: the schedule may sweep the same journal at any time."""
    run_id = run(services, "work.sweep", conf, "success")
    summary: dict[str, Any] = services.airflow.returned("work.sweep", run_id, "sweep")
    return summary


def ended(services: Any, dag_id: str, conf: dict[str, Any] | None = None) -> str:
    """How a run of a DAG came to its end."""
    run(services, dag_id, conf, "success")
    return "success"


def run(services: Any, dag_id: str, conf: dict[str, Any] | None, expected: str) -> str:
    """Run a DAG to the end that is expected; the run's id."""
    wait_until(lambda: services.airflow.has_dag(dag_id), 120, f"Airflow's knowing {dag_id}")
    services.airflow.unpause(dag_id)
    state = services.wait_for_run(dag_id, run_id := services.airflow.trigger(dag_id, conf))
    assert state == expected, services.task_logs(dag_id, run_id)
    return str(run_id)
