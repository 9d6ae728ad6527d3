"""How the tasks of a synchronisation follow each other, and which pipelines have one."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from tests.support.renditions_installed import RenditionInstallation

from tidemark.settings import ROOT

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore")]  # Airflow's own, while it is imported

EVENTS = """
name: events
source: {kafka: {topics: [oplog], format: oplog}}
writers:
  - {name: objects, kind: collection, envelope: oplog}
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RenditionInstallation:
    return RenditionInstallation(tmp_path, monkeypatch)


@pytest.fixture
def dag(installed: RenditionInstallation) -> Any:
    installed.pipelines.joinpath("events.yaml").write_text(EVENTS)
    return runpy.run_path(str(ROOT / "dags/sync.py"))["events_sync"]


def test_the_tasks_follow_each_other(dag):
    follow = {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}
    assert follow == {
        "validate": ["barrier", "replicate"],
        "replicate": ["barrier"],
        "barrier": ["diff"],
        "diff": ["guard", "report", "send", "verify"],
        "guard": ["approve", "report", "send"],
        "approve": ["follow_approval"],
        "follow_approval": ["send"],
        "send": ["replicate_corrections", "wait_for_replication"],
        "replicate_corrections": ["wait_for_replication"],
        "wait_for_replication": ["verify"],
        "verify": ["report"],
        "report": [],
    }


@pytest.mark.parametrize("task", ["barrier", "send", "wait_for_replication", "report"])
def test_a_task_after_one_that_may_be_skipped_still_runs(dag, task):
    assert dag.get_task(task).trigger_rule == "none_failed_min_one_success"


def test_nothing_is_verified_where_nothing_was_sent(dag):
    assert dag.get_task("verify").trigger_rule == "all_success"


def test_R28_H13_dump_and_start_have_to_be_named(dag):
    given = {name: dag.params.get_param(name) for name in dag.params}
    may_be_left_out = {name for name, one in given.items() if one.has_value or "null" in one.schema["type"]}
    assert given.keys() - may_be_left_out == {"dump", "start"}
    dag.validate()


def test_S20_a_run_is_dry_and_guarded_unless_asked_otherwise(dag):
    found = {name: dag.params[name] for name in ("dry_run", "approve", "max_deletes", "force")}
    assert found == {"dry_run": True, "approve": False, "max_deletes": "10%", "force": False}


@pytest.mark.parametrize(
    ("text", "is_taken"), [("500", True), ("2.5%", True), ("some", False), ("-1", False)]
)
def test_the_form_takes_a_number_or_a_share(dag, text, is_taken):
    param = dag.params.get_param("max_deletes")
    assert (param.resolve(text, suppress_exception=True) == text) == is_taken


def test_the_comparison_is_about_the_run_and_the_time_that_were_found(dag):
    arguments = dag.get_task("diff").application_args
    assert arguments[2::2] == ["--run", "--t"]
    assert "task_ids='validate'" in arguments[3]
    assert "task_ids='barrier'" in arguments[5]


def test_a_pipeline_without_operations_has_none(installed):
    found = runpy.run_path(str(ROOT / "dags/sync.py"))
    assert [name for name in found if name.endswith("_sync")] == []
