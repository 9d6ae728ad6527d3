"""How the tasks of a rebuild follow each other, and which runs of ``replicate`` look for changed settings."""

import runpy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.renditions_installed import RenditionInstallation

from tidemark.app.renditions.on_change import LONGEST_REASON
from tidemark.settings import ROOT

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore")]  # Airflow's own, while it is imported


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RenditionInstallation:
    return RenditionInstallation(tmp_path, monkeypatch)


def dag_of(kind: str) -> Any:
    return runpy.run_path(str(ROOT / "dags" / f"{kind}.py"))[f"bank_{kind}"]


def test_the_tasks_follow_each_other_and_an_approval_may_be_left_out(bank):
    dag = dag_of("rebuild")
    follow = {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}
    assert follow == {
        "register": ["build"],
        "build": ["verify"],
        "verify": ["decide"],
        "decide": ["approve", "hand_over"],
        "approve": ["follow_approval"],
        "follow_approval": ["hand_over"],
        "hand_over": ["retire", "soak"],
        "soak": ["retire"],
        "retire": [],
    }
    assert dag.get_task("hand_over").trigger_rule == "none_failed_min_one_success"


def test_a_build_is_a_delivery_to_one_consumer_until_it_has_everything(bank):
    arguments = dag_of("rebuild").get_task("build").application_args
    assert arguments[2::2][0] == "--consumer"
    assert "--until-caught-up" in arguments
    assert "task_ids='register', key='consumer'" in " ".join(arguments)


def test_the_form_offers_the_writers_of_the_file_and_is_dry(bank):
    params = dag_of("rebuild").params
    assert params.get_param("writer").schema["enum"] == ["archive"]
    assert params.get_param("reason").schema["maxLength"] == LONGEST_REASON
    assert (params["dry_run"], params["approve"], params["drop"]) == (True, "person", False)


@pytest.mark.parametrize(
    ("further", "found"),
    [
        ("", []),
        ("on_change: report", []),
        ("on_change: rebuild", ["find_changed", "start_rebuild"]),
    ],
)
def test_replicate_looks_for_changed_settings_only_where_a_writer_asks_for_it(bank, further, found):
    bank.declare(further=further)
    dag = dag_of("replicate")
    named = [task.task_id for task in dag.tasks if task.task_id in ("find_changed", "start_rebuild")]
    assert sorted(named) == found
    if found:
        assert dag.get_task("find_changed").upstream_task_ids == {"deliver"}
        assert dag.get_task("find_changed").trigger_rule == "all_done"
        assert dag.get_task("start_rebuild").upstream_task_ids == {"find_changed"}


@pytest.mark.parametrize(
    ("further", "found"),
    [
        ("", []),
        ("on_change: report", []),
        ("on_change: rebuild", ["find_changed", "start_rebuild"]),
    ],
)
def test_follow_looks_for_changed_settings_after_its_rounds(bank, further, found):
    bank.declare(further=further)
    bank.declare_text(f"{(bank.pipelines / 'bank.yaml').read_text()}follow: {{every: 1s, for: 10m}}\n")
    dag = dag_of("follow")
    named = [task.task_id for task in dag.tasks if task.task_id in ("find_changed", "start_rebuild")]
    assert sorted(named) == found
    assert dag.get_task("follow").about_changes == tuple(found[:1])
    for task_id in found:
        assert dag.get_task(task_id).retries * dag.get_task(task_id).retry_delay <= timedelta(seconds=5)
    if found:
        assert dag.get_task("find_changed").upstream_task_ids == {"follow"}
        assert dag.get_task("find_changed").trigger_rule == "all_done"
